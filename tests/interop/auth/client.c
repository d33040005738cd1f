/* Segue's client gets tokens for a server that requires them: one check after another,
 * one JSON line for each.
 *
 *   auth_client URL
 *
 * The browser is one GET that does not follow the redirect. It runs inside the callback,
 * because there is nothing else to do meanwhile. */
#include "interop/probe.h"

#include <arpa/inet.h>
#include <segue/segue_auth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Texts that are saved between two sessions: one text per key. */
#define KEPT 8

typedef struct keeper {
    segue_runtime *runtime;
    int visits; /* number of visits of the browser */
    char *keys[KEPT];
    char *texts[KEPT];
} keeper;

/* ---- the browser ---- */

/* Reads the head of the answer to a GET, as far as it comes. */
static void get(const char *url, char *answer, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    unsigned short port;
    int place = 0;
    size_t used = 0;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && sscanf(url, "http://127.0.0.1:%hu%n", &port, &place) == 1) {
        address.sin_port = htons(port);
        if (!connect(fd, (struct sockaddr *)&address, sizeof address)) {
            dprintf(fd, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%hu\r\n\r\n", url + place,
                    port);
            for (ssize_t n; used + 1 < size && !strstr(answer, "\r\n\r\n") &&
                            (n = recv(fd, answer + used, size - 1 - used, 0)) > 0;) {
                used += (size_t)n;
                answer[used] = 0;
            }
        }
    }
    close(fd);
}

static void browse(void *user, const char *url, const char *state)
{
    keeper *k = user;
    char answer[8192] = "", place[4096] = "";
    (void)state;
    k->visits++;
    get(url, answer, sizeof answer);
    for (char *line = answer; line; line = strstr(line + 1, "\r\n"))
        if (!strncmp(line, "\r\nlocation: ", 12))
            sscanf(line + 12, "%4095s", place);
    segue_status status = segue_runtime_authorize(k->runtime, place);
    if (status != SEGUE_OK)
        fprintf(stderr, "authorize: %s for %.300s\n", segue_status_name(status), answer);
}

/* ---- saved texts ---- */

static const char *load(void *user, const char *key, size_t *len)
{
    const keeper *k = user;
    for (int i = 0; i < KEPT && k->keys[i]; i++)
        if (!strcmp(k->keys[i], key)) {
            *len = strlen(k->texts[i]);
            return k->texts[i];
        }
    return NULL;
}

static void save(void *user, const char *key, const char *json, size_t len)
{
    keeper *k = user;
    int i = 0;
    while (i < KEPT - 1 && k->keys[i] && strcmp(k->keys[i], key) != 0)
        i++;
    free(k->keys[i]);
    free(k->texts[i]);
    k->keys[i] = strdup(key);
    k->texts[i] = strndup(json, len);
}

static void forget(keeper *k)
{
    for (int i = 0; i < KEPT; i++) {
        free(k->keys[i]);
        free(k->texts[i]);
    }
    *k = (keeper){.runtime = k->runtime};
}

/* ---- checks ---- */

static const char *greet_in(peer *p, int32_t era)
{
    const char *reason = NULL;
    segue_status status = open_session(p, era, 0, 0);
    if (status != SEGUE_OK)
        return because("not opened: %s", segue_status_name(status));
    if (!wait_for(p, &p->opens, 1))
        reason = because("no on_open; closed %d times", p->closes);
    if (!reason)
        reason = greet(p);
    if (!close_session(p) && !reason)
        reason = "no on_closed";
    return reason;
}

/* Connects twice: the second session finds the texts that the first has saved. */
static const char *check_code(peer *p, keeper *k, int32_t era)
{
    const char *reason = greet_in(p, era);
    if (!reason && k->visits != 1)
        reason = because("%d visits of the browser", k->visits);
    if (!reason)
        reason = greet_in(p, era);
    if (!reason && k->visits != 1)
        reason = because("%d visits with a token that was kept", k->visits);
    forget(k);
    return reason;
}

/* No token is issued: the request ends with an error that says why. */
static const char *check_refusal(peer *p)
{
    peer other = {.runtime = p->runtime, .argv = p->argv, .era = p->era};
    exchange x;
    if (open_session(&other, SEGUE_ERA_LEGACY, 0, 0) != SEGUE_OK)
        return "not opened";
    const char *reason = ask(&other, &x, "tools/list", NULL);
    if (!reason)
        reason = because("it answered %.200s", x.json);
    else if (x.status == SEGUE_E_UNAUTHORIZED)
        reason = NULL;
    clear(&x);
    close_session(&other);
    return reason;
}

int main(int argc, char **argv)
{
    keeper kept = {0};
    segue_oauth_options oauth;
    peer p = {.argv = (const char *const *)argv + 1, .era = ERA_ALL, .oauth = &oauth};
    if (argc != 2 || segue_runtime_new(NULL, &p.runtime, NULL) != SEGUE_OK)
        return 2;
    kept.runtime = p.runtime;
    oauth = SEGUE_OAUTH_OPTIONS_INIT;
    oauth.client_name = "segue-judge";
    oauth.redirect_uri = "http://127.0.0.1:9/callback";
    oauth.user = &kept;
    oauth.on_authorize = browse;
    oauth.on_load = load;
    oauth.on_save = save;
    report("without a token it is refused", check_refusal(&p));
    report("modern: registration, code, token, call",
           check_code(&p, &kept, SEGUE_ERA_MODERN));
    report("legacy: registration, code, token, call",
           check_code(&p, &kept, SEGUE_ERA_LEGACY));
    segue_runtime_free(p.runtime);
    return 0;
}
