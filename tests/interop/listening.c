/* Signals only set flags; the loop checks them between two rounds. */
#include "listening.h"

#include <segue/segue_auth.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t asked_to_end;
static volatile sig_atomic_t asked_to_reload;

static const struct {
    const char *name;
    size_t at; /* index in `listening` */
    enum { A_TEXT, A_NUMBER, A_TIME } kind;
} fields[] = {
    {"--http", offsetof(listening, options.address), A_TEXT},
    {"--port", offsetof(listening, options.port), A_NUMBER},
    {"--reuse-port", offsetof(listening, options.reuse_port), A_NUMBER},
    {"--cert", offsetof(listening, options.cert_file), A_TEXT},
    {"--key", offsetof(listening, options.key_file), A_TEXT},
    {"--origins", offsetof(listening, options.origins), A_TEXT},
    {"--cors", offsetof(listening, options.cors), A_NUMBER},
    {"--health", offsetof(listening, options.health_path), A_TEXT},
    {"--keepalive", offsetof(listening, options.keepalive_ms), A_TIME},
    {"--stream-after", offsetof(listening, options.stream_after_ms), A_TIME},
    {"--issuer", offsetof(listening, bearer.authorization_servers), A_TEXT},
    {"--jwks", offsetof(listening, bearer.jwks_url), A_TEXT},
    {"--scopes", offsetof(listening, bearer.required_scopes), A_TEXT},
    {"--drain", offsetof(listening, options.drain_ms), A_TIME},
};

int listening_take(listening *l, const char *name, const char *value)
{
    if (!l->is_wanted) {
        l->options = SEGUE_LISTEN_OPTIONS_INIT;
        l->bearer = SEGUE_BEARER_OPTIONS_INIT;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        void *field = (char *)l + fields[i].at;
        if (strcmp(name, fields[i].name) != 0)
            continue;
        l->is_wanted = 1;
        if (fields[i].kind == A_TEXT)
            *(const char **)field = value;
        else if (fields[i].kind == A_NUMBER)
            *(int32_t *)field = atoi(value);
        else
            *(int64_t *)field = atoi(value);
        return 1;
    }
    return 0;
}

static void note_end(int number)
{
    (void)number;
    asked_to_end = 1;
}

static void note_reload(int number)
{
    (void)number;
    asked_to_reload = 1;
}

segue_status listening_begin(listening *l, segue_server *server)
{
    segue_error *error = NULL;
    l->server = server;
    l->options.bearer = l->bearer.authorization_servers ? &l->bearer : NULL;
    signal(SIGTERM, note_end);
    signal(SIGINT, note_end);
    signal(SIGHUP, note_reload);
    segue_status status = segue_server_listen(server, &l->options, &l->listener, &error);
    if (status == SEGUE_OK)
        printf("%s\n", segue_listener_url(l->listener));
    else
        fprintf(stderr, "fixture_server: %s\n", segue_error_read(error)->message);
    fflush(stdout);
    segue_error_free(error);
    return status;
}

static void reload(listening *l)
{
    segue_error *error = NULL;
    asked_to_reload = 0;
    segue_status status = segue_listener_reload(l->listener, &error);
    printf("%s\n", status == SEGUE_OK ? "reloaded" : segue_error_read(error)->message);
    fflush(stdout);
    segue_error_free(error);
}

int listening_tick(listening *l, int64_t now_ms)
{
    if (!l->listener)
        return 0;
    if (asked_to_reload)
        reload(l);
    if (asked_to_end && !l->is_closing) {
        l->is_closing = 1;
        l->deadline_ms =
            now_ms + (l->options.drain_ms > 0 ? l->options.drain_ms : 10000) + 500;
        segue_server_close(l->server);
    }
    return l->is_closing && now_ms >= l->deadline_ms;
}
