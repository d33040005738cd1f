/* Handles and tokens together (2026-07-28 basic/authorization; 2025-11-25
 * basic/security_best_practices, "Session Hijacking"). A handle is no token, and a token
 * gives access only to the handles of its subject. A foreign handle is answered like an
 * unknown one, byte for byte (R-0-5). Without a good token all handles are answered
 * alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/bearer_kit.h"

#define INVENTED "AAAAAAAAAAAAAAAAAAAAAA"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define HELLO                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"               \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                            \
    "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}"

typedef struct people {
    bearer_kit k;
    http_caller c;
    char *ada, *again, *bob, *late;
} people;

static void begin(people *p)
{
    *p = (people){0};
    bearer_kit_begin(&p->k);
    p->ada = bearer_token(&p->k, "ada", "", 3600);
    p->again = bearer_token(&p->k, "ada", "more", 7200);
    p->bob = bearer_token(&p->k, "bob", "", 3600);
    p->late = bearer_token(&p->k, "ada", "", -3600);
    http_caller_open(&p->k.s, &p->c);
}

static void end(people *p)
{
    http_caller_close(&p->c);
    free(p->ada);
    free(p->again);
    free(p->bob);
    free(p->late);
    bearer_kit_end(&p->k);
}

static void open_session(people *p, const char *token, char id[64])
{
    http_reply reply;
    bearer_ask(&p->c, http_post("", HELLO), token, 200, &reply);
    snprintf(id, 64, "%s", http_reply_header(&reply, "Mcp-Session-Id"));
    assert_int_equal(strlen(id), strlen(INVENTED));
    http_reply_free(&reply);
}

static char *in_session(const char *id, const char *body)
{
    char lines[128];
    snprintf(lines, sizeof lines, "Mcp-Session-Id: %s\r\n", id);
    return http_post(lines, body);
}

/* Copies the whole answer without its date; the connection may end with it. */
static void whole(people *p, char *request, const char *token, int status, char *text,
                  size_t size)
{
    http_reply reply;
    bearer_ask(&p->c, request, token, status, &reply);
    char *date = strstr(reply.head, "Date: ");
    assert_non_null(date);
    char *rest = strstr(date, "\r\n") + 2;
    memmove(date, rest, strlen(rest) + 1);
    snprintf(text, size, "%s%s", reply.head, reply.body ? reply.body : "");
    if (strstr(reply.head, "Connection: close")) {
        http_caller_close(&p->c);
        http_caller_open(&p->k.s, &p->c);
    }
    http_reply_free(&reply);
}

/* All on one connection, as a gateway would send them: the connection has no owner. */
static void a_session_is_its_subjects(void **state)
{
    people p;
    char id[64], none[3000], foreign[3000];
    (void)state;
    begin(&p);
    open_session(&p, p.ada, id);
    for (int i = 0; i < 2; i++) {
        whole(&p, in_session(INVENTED, PING), p.bob, 404, none, sizeof none);
        whole(&p, in_session(id, PING), p.bob, 404, foreign, sizeof foreign);
        assert_string_equal(foreign, none);
        bearer_ask(&p.c, in_session(id, PING), p.ada, 200, NULL);
        /* the subject's newer token */
        bearer_ask(&p.c, in_session(id, PING), p.again, 200, NULL);
    }
    end(&p);
}

/* A session that an attacker has opened for others to use. */
static void a_session_is_not_handed_on(void **state)
{
    people p;
    char id[64];
    (void)state;
    begin(&p);
    open_session(&p, p.bob, id);
    bearer_ask(&p.c, in_session(id, PING), p.ada, 404, NULL);
    /* opens a session of the caller's own */
    bearer_ask(&p.c, in_session(id, HELLO), p.ada, 200, NULL);
    bearer_ask(&p.c, in_session(id, PING), p.ada, 404, NULL);
    bearer_ask(&p.c, in_session(id, PING), p.bob, 200, NULL);
    end(&p);
}

/* Without a good token a living session is answered like an unknown one. */
static void a_session_is_no_token(void **state)
{
    people p;
    char id[64], none[3000], lives[3000];
    (void)state;
    begin(&p);
    open_session(&p, p.ada, id);
    const char *const tokens[] = {NULL, p.late, "made.up.token"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        whole(&p, in_session(INVENTED, PING), tokens[i], 401, none, sizeof none);
        whole(&p, in_session(id, PING), tokens[i], 401, lives, sizeof lives);
        assert_string_equal(lives, none);
    }
    bearer_ask(&p.c, in_session(id, PING), p.ada, 200, NULL);
    end(&p);
}

static char *about(const char *method, const char *task)
{
    char params[128];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", task);
    return http_request("1", method, task, params, HTTP_CAPS_TASKS);
}

static void a_task_is_its_subjects(void **state)
{
    static const char *const methods[] = {"tasks/get", "tasks/cancel", "tasks/stream"};
    people p;
    http_reply reply;
    char id[64] = "", none[3000], foreign[3000];
    (void)state;
    begin(&p);
    bearer_ask(
        &p.c,
        http_request("1", "tools/call", "hang", "\"name\":\"hang\"", HTTP_CAPS_TASKS),
        p.ada, 200, &reply);
    const char *at = strstr(reply.body, "\"taskId\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 10, "%63[^\"]", id), 1);
    http_reply_free(&reply);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        whole(&p, about(methods[i], INVENTED), p.bob, 200, none, sizeof none);
        assert_non_null(strstr(none, "-32602"));
        whole(&p, about(methods[i], id), p.bob, 200, foreign, sizeof foreign);
        assert_string_equal(foreign, none);
    }
    bearer_ask(&p.c, about("tasks/get", id), p.again, 200, &reply);
    assert_non_null(strstr(reply.body, "\"status\":\"working\""));
    http_reply_free(&reply);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_its_subjects),
        cmocka_unit_test(a_session_is_not_handed_on),
        cmocka_unit_test(a_session_is_no_token),
        cmocka_unit_test(a_task_is_its_subjects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
