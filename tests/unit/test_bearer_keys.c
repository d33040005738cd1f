/* The keys of an authorization server by URL and by file: when they are fetched, which
 * requests wait for them, and how little a flood of invented keys costs. The test plays
 * the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>
#include <unistd.h>

#include "support/bearer_kit.h"
#include "support/http_peer.h"
#include "transport/http_listener.h"

#define UNKNOWN "{\"alg\":\"ES256\",\"kid\":\"two\"}"

typedef struct scene {
    bearer_kit k;
    http_peer peer;
    http_line line;
    http_caller c;
    char url[64];
    char *token, *claims;
} scene;

static void begin(scene *s)
{
    setenv("no_proxy", "*", 1);
    http_peer_open(&s->peer);
    s->line = (http_line){.fd = -1};
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d/jwks", s->peer.port);
    s->k.options.jwks_url = s->url;
    bearer_kit_begin(&s->k);
    s->token = bearer_token(&s->k, "ada", "", 100000);
    http_caller_open(&s->k.s, &s->c);
}

static void end(scene *s)
{
    http_caller_close(&s->c);
    if (s->line.fd >= 0)
        http_line_close(&s->line);
    http_peer_close(&s->peer);
    bearer_kit_end(&s->k);
    free(s->token);
}

/* Turns the loop until the condition holds. */
#define UNTIL(scene_, holds)                                                             \
    do {                                                                                 \
        int turns_ = 0;                                                                  \
        while (!(holds)) {                                                               \
            assert_true(turns_++ < 2000);                                                \
            assert_int_equal(segue_runtime_dispatch((scene_)->k.s.rt, 1, 0, NULL),       \
                             SEGUE_OK);                                                  \
        }                                                                                \
    } while (0)

static bool is_asked(scene *s)
{
    if (s->line.fd < 0 && !http_peer_accept(&s->peer, &s->line))
        return false;
    if (http_line_asked(&s->line))
        return true;
    if (s->line.ended) {
        http_line_close(&s->line);
        s->line = (http_line){.fd = -1};
    }
    return false;
}

/* Expects a request for the keys and gives this answer. */
static void give(scene *s, const char *status, const char *body)
{
    char head[256];
    UNTIL(s, is_asked(s));
    assert_int_equal(strncmp(s->line.in, "GET /jwks HTTP/1.1\r\n", 20), 0);
    assert_null(strstr(s->line.in, "Authorization")); /* the key server must not see
                                                       * tokens */
    http_line_clear(&s->line);
    snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status,
             strlen(body));
    http_line_say(&s->line, head);
    size_t at = 0, len = strlen(body);
    UNTIL(s, (at += http_line_push(&s->line, body + at, len - at)) == len);
}

static bool is_quiet(scene *s)
{
    http_stage_run(&s->k.s);
    return !is_asked(s);
}

static void say(http_caller *c, const char *token)
{
    char *request = bearer_with(http_call("1", "greet", "{\"name\":\"x\"}"), token);
    http_caller_say(c, request);
    free(request);
}

static void expect(http_caller *c, int status)
{
    assert_int_equal(http_caller_status(c), status);
}

static char *invention_of(const scene *s, int n, const char *issuer, const char *audience,
                          const char *expires)
{
    char header[64], claims[256];
    snprintf(header, sizeof header, "{\"alg\":\"ES256\",\"kid\":\"x%d\"}", n);
    snprintf(claims, sizeof claims,
             "{\"iss\":\"%s\",\"aud\":\"%s\",\"sub\":\"eve\",\"exp\":%s}", issuer,
             audience, expires);
    return token_sign(&s->k.key, "ES256", header, claims);
}

static char *invention(const scene *s, int n)
{
    return invention_of(s, n, KIT_ISSUER, KIT_RESOURCE, "1764009999");
}

/* Expects 503 with a Retry-After of this many seconds. */
static void expect_later(http_caller *c, const char *seconds)
{
    http_reply reply;
    http_caller_read(c, &reply);
    assert_int_equal(reply.status, 503);
    assert_string_equal(http_reply_header(&reply, "Retry-After"), seconds);
    assert_string_equal(http_reply_header(&reply, "WWW-Authenticate"), "");
    http_reply_free(&reply);
}

/* ---- the first keys ---- */

static void requests_wait_for_the_first_keys(void **state)
{
    scene s = {0};
    http_caller second;
    (void)state;
    begin(&s);
    http_caller_open(&s.k.s, &second);
    say(&s.c, s.token);
    say(&second, s.token);
    http_stage_run(&s.k.s);
    http_caller_quiet(&s.c);
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 200);
    expect(&second, 200);
    say(&s.c, s.token);
    expect(&s.c, 200);
    assert_true(is_quiet(&s)); /* one fetch is enough */
    http_caller_close(&second);
    end(&s);
}

/* None of these answers has keys, so callers get 503, and the fetch is tried again a
 * little later. */
static void without_keys_nobody_can_be_checked(void **state)
{
    static const struct {
        const char *status, *body;
    } rows[] = {{"404 Not Found", "{}"},
                {"500 Oops", ""},
                {"200 OK", "{\"keys\":{}}"},
                {"200 OK", "<html>"},
                {"302 Found", ""}};
    scene s = {0};
    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        say(&s.c, s.token);
        give(&s, rows[i].status, rows[i].body);
        expect_later(&s.c, "1");
        say(&s.c, s.token); /* refused at once: the keys are not fetched again so soon */
        expect(&s.c, 503);
        http_stage_advance(&s.k.s, 1000);
    }
    say(&s.c, s.token);
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 200);
    end(&s);
}

static void a_set_that_is_too_large_is_none(void **state)
{
    scene s = {0};
    char *large = malloc(SGI_JWKS_BYTES + 2);
    (void)state;
    begin(&s);
    memset(large, ' ', SGI_JWKS_BYTES + 1);
    large[SGI_JWKS_BYTES + 1] = 0;
    memcpy(large, s.k.set, strlen(s.k.set));
    say(&s.c, s.token);
    give(&s, "200 OK", large);
    expect(&s.c, 503);
    large[SGI_JWKS_BYTES] = 0;
    http_stage_advance(&s.k.s, 1000);
    say(&s.c, s.token);
    give(&s, "200 OK", large); /* exactly at the limit */
    expect(&s.c, 200);
    free(large);
    end(&s);
}

static void keys_that_do_not_come_are_not_waited_for(void **state)
{
    scene s = {.k = {.options = {.check_timeout_ms = 2000}}};
    (void)state;
    begin(&s);
    say(&s.c, s.token);
    UNTIL(&s, is_asked(&s));
    http_stage_advance(&s.k.s, 1900);
    http_caller_quiet(&s.c);
    http_stage_advance(&s.k.s, 200);
    expect(&s.c, 503);
    http_line_close(&s.line);
    s.line = (http_line){.fd = -1};
    http_stage_advance(&s.k.s, 1000);
    http_caller_close(&s.c);
    http_caller_open(&s.k.s, &s.c);
    say(&s.c, s.token);
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 200);
    end(&s);
}

/* A waiting caller may leave, and the keys are fetched nevertheless. */
static void a_caller_that_leaves_is_forgotten(void **state)
{
    scene s = {0};
    (void)state;
    begin(&s);
    say(&s.c, s.token);
    UNTIL(&s, is_asked(&s));
    http_caller_reset(&s.c);
    http_stage_run(&s.k.s);
    assert_int_equal(s.k.s.listener->bearer->waiting_count, 0);
    give(&s, "200 OK", s.k.set);
    http_caller_open(&s.k.s, &s.c);
    say(&s.c, s.token);
    expect(&s.c, 200);
    end(&s);
}

/* The runtime may end while a caller waits for the keys. */
static void the_end_may_come_while_keys_are_fetched(void **state)
{
    scene s = {0};
    (void)state;
    begin(&s);
    say(&s.c, s.token);
    UNTIL(&s, is_asked(&s));
    end(&s);
}

/* At the bound a further caller gets 503. */
static void those_who_wait_are_bounded(void **state)
{
    scene s = {0};
    http_caller second;
    (void)state;
    begin(&s);
    http_caller_open(&s.k.s, &second);
    say(&s.c, s.token);
    UNTIL(&s, is_asked(&s));
    sgi_bearer_gate *gate = s.k.s.listener->bearer;
    assert_int_equal(gate->waiting_count, 1);
    gate->waiting_count = SGI_BEARER_WAITING_MAX; /* pretends that the others wait */
    say(&second, s.token);
    expect(&second, 503);
    gate->waiting_count = 1;
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 200);
    http_caller_close(&second);
    end(&s);
}

/* ---- new keys ---- */

static void a_new_key_is_fetched_when_it_is_met(void **state)
{
    scene s = {0};
    token_key two;
    (void)state;
    begin(&s);
    say(&s.c, s.token);
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 200);
    token_key_make(&two, TOKEN_RSA, "two");
    const token_key *only[] = {&two};
    char *set = token_key_set(only, 1);
    char *fresh = token_sign(&two, "RS256", "{\"alg\":\"RS256\",\"kid\":\"two\"}",
                             "{\"iss\":\"" KIT_ISSUER "\",\"aud\":\"" KIT_RESOURCE
                             "\",\"sub\":\"ada\",\"exp\":1764009999}");
    http_stage_advance(&s.k.s, 30000);
    say(&s.c, fresh);
    give(&s, "200 OK", set);
    expect(&s.c, 200);
    /* The old key is gone, and the tokens signed with it are refused, remembered or
     * not. */
    http_stage_advance(&s.k.s, 30000);
    say(&s.c, s.token);
    give(&s, "200 OK", set);
    expect(&s.c, 401);
    say(&s.c, fresh);
    expect(&s.c, 200);
    free(fresh);
    free(set);
    token_key_free(&two);
    end(&s);
}

/* However many tokens name unknown keys, there are two fetches per jwks_refresh_ms, and
 * other callers are served meanwhile. A token that comes too early is not refused: its
 * key may be new. */
static void a_flood_of_inventions_costs_two_fetches(void **state)
{
    scene s = {.k = {.options = {.jwks_refresh_ms = 10000}}};
    int fetches = 0;
    (void)state;
    begin(&s);
    say(&s.c, s.token);
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 200);
    http_stage_advance(&s.k.s, 10000);
    for (int i = 0; i < 300; i++) {
        char *token = invention(&s, i);
        say(&s.c, token);
        if (i % 100 < 2) {
            give(&s, "200 OK", s.k.set);
            fetches++;
            expect(&s.c, 401);
        } else {
            expect_later(&s.c, "10");
        }
        assert_true(is_quiet(&s));
        free(token);
        if (i % 100 == 99) {
            say(&s.c, s.token);
            expect(&s.c, 200);
            http_stage_advance(&s.k.s, 10000);
        }
    }
    assert_int_equal(fetches, 6);
    end(&s);
}

/* A token that would be refused with any key causes no fetch. */
static void tokens_that_cannot_be_good_cost_no_fetch(void **state)
{
    scene s = {0};
    (void)state;
    begin(&s);
    say(&s.c, s.token);
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 200);
    http_stage_advance(&s.k.s, 30000);
    char *tokens[] = {
        invention_of(&s, 1, "https://other.example", KIT_RESOURCE, "1764009999"),
        invention_of(&s, 2, KIT_ISSUER, "https://other.example", "1764009999"),
        invention_of(&s, 3, KIT_ISSUER, KIT_RESOURCE, "1"),
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        say(&s.c, tokens[i]);
        expect(&s.c, 401);
        assert_true(is_quiet(&s));
        free(tokens[i]);
    }
    end(&s);
}

/* Keys change right after a fetch for an invented key. */
static void an_invention_does_not_lock_out_a_new_key(void **state)
{
    scene s = {0};
    token_key two;
    (void)state;
    begin(&s);
    say(&s.c, s.token);
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 200);
    http_stage_advance(&s.k.s, 30000);
    char *token = invention(&s, 1);
    say(&s.c, token);
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 401);
    token_key_make(&two, TOKEN_RSA, "two");
    const token_key *only[] = {&two};
    char *set = token_key_set(only, 1);
    char *fresh = token_sign(&two, "RS256", "{\"alg\":\"RS256\",\"kid\":\"two\"}",
                             "{\"iss\":\"" KIT_ISSUER "\",\"aud\":\"" KIT_RESOURCE
                             "\",\"sub\":\"ada\",\"exp\":1764009999}");
    say(&s.c, fresh);
    give(&s, "503 Service Unavailable", ""); /* without an answer the key cannot be called
                                              * unknown */
    expect_later(&s.c, "30");
    http_stage_advance(&s.k.s, 25000);
    say(&s.c, fresh);
    expect_later(&s.c, "5");
    http_stage_advance(&s.k.s, 5000);
    say(&s.c, fresh);
    give(&s, "200 OK", set);
    expect(&s.c, 200);
    free(token);
    free(fresh);
    free(set);
    token_key_free(&two);
    end(&s);
}

/* Old keys are fetched again in the background; while the key server is away, the old
 * keys are used. */
static void old_keys_are_fetched_anew(void **state)
{
    scene s = {.k = {.options = {.jwks_age_ms = 60000, .jwks_refresh_ms = 5000}}};
    (void)state;
    begin(&s);
    say(&s.c, s.token);
    give(&s, "200 OK", s.k.set);
    expect(&s.c, 200);
    http_stage_advance(&s.k.s, 59000);
    say(&s.c, s.token);
    expect(&s.c, 200);
    assert_true(is_quiet(&s));
    http_stage_advance(&s.k.s, 2000);
    say(&s.c, s.token);
    expect(&s.c, 200); /* the caller does not wait for the fetch */
    give(&s, "503 Away", "");
    http_stage_run(&s.k.s);
    say(&s.c, s.token);
    expect(&s.c, 200);
    assert_true(is_quiet(&s)); /* not fetched again at once */
    http_stage_advance(&s.k.s, 5000);
    say(&s.c, s.token);
    expect(&s.c, 200);
    give(&s, "200 OK", "{\"keys\":[]}"); /* all keys were withdrawn */
    http_stage_run(&s.k.s);
    say(&s.c, s.token);
    give(&s, "200 OK", "{\"keys\":[]}"); /* one fetch is reserved for tokens with a new
                                          * key */
    expect(&s.c, 401);
    end(&s);
}

/* ---- a file ---- */

static void save(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void a_file_is_read_again_when_told(void **state)
{
    bearer_kit k = {0};
    http_caller c;
    segue_error *error = NULL;
    char path[] = "jwks-XXXXXX";
    token_key two;
    (void)state;
    close(mkstemp(path));
    token_key_make(&two, TOKEN_P256, "two");
    const token_key *keys[] = {&two};
    char *set = token_key_set(keys, 1);
    save(path, set);
    k.options.jwks_file = path;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    char *token = bearer_token(&k, "ada", "", 600);
    say(&c, token);
    expect(&c, 401);
    save(path, "{");
    assert_int_equal(segue_listener_reload(k.s.listener, &error), SEGUE_E_IO);
    assert_non_null(strstr(segue_error_read(error)->message, "key set"));
    segue_error_free(error);
    /* the keys are as before */
    assert_int_equal(k.s.listener->bearer->keys.set.count, 1);
    save(path, k.set);
    assert_int_equal(segue_listener_reload(k.s.listener, NULL), SEGUE_OK);
    say(&c, token);
    expect(&c, 200);
    save(path, "{\"keys\":[]}");
    assert_int_equal(segue_listener_reload(k.s.listener, NULL), SEGUE_E_IO);
    unlink(path);
    assert_int_equal(segue_listener_reload(k.s.listener, NULL), SEGUE_E_IO);
    say(&c, token);
    expect(&c, 200);
    save(path, set); /* the key is removed, and tokens signed with this key are refused */
    assert_int_equal(segue_listener_reload(k.s.listener, NULL), SEGUE_OK);
    say(&c, token);
    expect(&c, 401);
    unlink(path);
    free(set);
    free(token);
    token_key_free(&two);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* ---- what is remembered ---- */

/* At most the allowed number of tokens is remembered, and the least recently used one
 * goes. With the number 0 no token is remembered. */
static void good_tokens_are_remembered_within_bounds(void **state)
{
    static const int32_t bounds[] = {3, -1};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        bearer_kit k = {.options = {.max_tokens = bounds[i]}};
        http_caller c;
        bearer_kit_begin(&k);
        http_caller_open(&k.s, &c);
        char *first = bearer_token(&k, "ada", "", 600);
        for (int n = 0; n < 10; n++) {
            char name[16];
            snprintf(name, sizeof name, "user%d", n);
            char *token = bearer_token(&k, name, "", 600);
            say(&c, token);
            expect(&c, 200);
            say(&c, first);
            expect(&c, 200);
            free(token);
            const sgi_bearer_cache *cache = &k.s.listener->bearer->cache;
            size_t expected = bounds[i] < 0 ? 0 : n < 1 ? 2 : 3;
            assert_int_equal(cache->count, expected);
            assert_int_equal(cache->by_digest.count, expected);
        }
        free(first);
        http_caller_close(&c);
        bearer_kit_end(&k);
    }
}

static void a_remembered_token_expires(void **state)
{
    bearer_kit k = {.options = {.leeway_ms = -1}};
    http_caller c;
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    char *token = bearer_token(&k, "ada", "", 10);
    say(&c, token);
    expect(&c, 200);
    http_stage_advance(&k.s, 8000); /* the clock of the stage began at one second */
    say(&c, token);
    expect(&c, 200);
    http_stage_advance(&k.s, 1500);
    say(&c, token);
    expect(&c, 401);
    assert_int_equal(k.s.listener->bearer->cache.count, 0);
    free(token);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_wait_for_the_first_keys),
        cmocka_unit_test(without_keys_nobody_can_be_checked),
        cmocka_unit_test(a_set_that_is_too_large_is_none),
        cmocka_unit_test(keys_that_do_not_come_are_not_waited_for),
        cmocka_unit_test(a_caller_that_leaves_is_forgotten),
        cmocka_unit_test(the_end_may_come_while_keys_are_fetched),
        cmocka_unit_test(those_who_wait_are_bounded),
        cmocka_unit_test(a_new_key_is_fetched_when_it_is_met),
        cmocka_unit_test(a_flood_of_inventions_costs_two_fetches),
        cmocka_unit_test(tokens_that_cannot_be_good_cost_no_fetch),
        cmocka_unit_test(an_invention_does_not_lock_out_a_new_key),
        cmocka_unit_test(old_keys_are_fetched_anew),
        cmocka_unit_test(a_file_is_read_again_when_told),
        cmocka_unit_test(good_tokens_are_remembered_within_bounds),
        cmocka_unit_test(a_remembered_token_expires),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
