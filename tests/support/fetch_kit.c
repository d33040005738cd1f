#include "fetch_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void fetch_set_up(fetch_rig *rig)
{
    *rig = (fetch_rig){.peer.listener = -1};
    test_mem_init(&rig->mem);
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .allocator = &rig->mem.mem};
    assert_int_equal(sgi_runtime_new(&options, &rig->rt, NULL), SEGUE_OK);
    http_peer_open(&rig->peer);
}

void fetch_connect(fetch_rig *rig, const sgi_fetch_settings *settings)
{
    sgi_fetch_settings own = {.proxy = ""};
    char why[SGI_WHY_SIZE];
    if (settings)
        own = *settings;
    snprintf(rig->url, sizeof rig->url, "http://127.0.0.1:%d/mcp", rig->peer.port);
    if (getenv("SEGUE_TEST_BY_LIBCURL"))
        own.by_libcurl = true;
    if (!own.url)
        own.url = rig->url;
    assert_int_equal(sgi_fetcher_new(rig->rt, &own, &rig->fetcher, why), SEGUE_OK);
}

void fetch_begin(fetch_rig *rig, const sgi_fetch_settings *settings)
{
    fetch_set_up(rig);
    fetch_connect(rig, settings);
}

void fetch_tear_down(fetch_rig *rig)
{
    sgi_runtime_lock(rig->rt);
    sgi_fetcher_free(rig->fetcher);
    sgi_runtime_unlock(rig->rt);
    sgi_runtime_free(rig->rt);
    http_peer_close(&rig->peer);
    assert_int_equal(rig->mem.live, 0);
}

/* ---- events ---- */

static void on_head(void *user, sgi_fetch *fetch, int32_t status)
{
    fetch_seen *seen = user;
    sgi_str type = sgi_fetch_get_header(fetch, "CONTENT-type");
    assert_int_equal(seen->heads, 0);
    assert_int_equal(seen->dones, 0);
    seen->heads++;
    seen->status = status;
    snprintf(seen->type, sizeof seen->type, "%.*s", (int)type.n, type.p ? type.p : "");
    if (seen->at_head)
        seen->at_head(seen);
}

static void on_bytes(void *user, sgi_fetch *fetch, const char *bytes, size_t len)
{
    fetch_seen *seen = user;
    assert_ptr_equal(fetch, seen->fetch);
    assert_int_equal(seen->heads, 1);
    assert_int_equal(seen->dones, 0);
    for (size_t i = 0; i < len && seen->total + i < sizeof seen->body - 1; i++)
        seen->body[seen->total + i] = bytes[i];
    seen->pieces++;
    seen->total += len;
    if (seen->at_bytes)
        seen->at_bytes(seen);
}

static void on_done(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome)
{
    fetch_seen *seen = user;
    assert_ptr_equal(fetch, seen->fetch);
    assert_int_equal(seen->dones, 0);
    seen->dones++;
    seen->fault = outcome->fault;
    snprintf(seen->text, sizeof seen->text, "%s", outcome->text);
    if (seen->at_done)
        seen->at_done(seen);
    seen->fetch = NULL;
}

static const sgi_fetch_events events = {NULL, on_head, on_bytes, on_done};

/* ---- the owner's side ---- */

segue_status fetch_request(fetch_rig *rig, fetch_seen *seen, sgi_fetch_method method,
                           const sgi_fetch_header_line *headers, size_t count,
                           const char *body)
{
    sgi_buf text;
    sgi_buf_init(&text, &rig->mem.mem);
    if (body)
        sgi_buf_add_str(&text, sgi_str_of(body));
    if (text.failed) {
        sgi_buf_free(&text);
        return SEGUE_E_NOMEM;
    }
    sgi_fetch_request request = {.method = method,
                                 .headers = headers,
                                 .header_count = count,
                                 .body = body ? &text : NULL,
                                 .lane = rig->lane,
                                 .once = rig->once,
                                 .url = *rig->named ? rig->named : NULL,
                                 .public_only = rig->public_only,
                                 .excepted = rig->excepted};
    seen->rig = rig;
    sgi_runtime_lock(rig->rt);
    segue_status status =
        sgi_fetch_start(rig->fetcher, &request, &events, seen, &seen->fetch);
    sgi_runtime_unlock(rig->rt);
    assert_int_equal(text.len, status == SEGUE_OK || !body ? 0 : strlen(body));
    sgi_buf_free(&text);
    return status;
}

void fetch_start(fetch_rig *rig, fetch_seen *seen, const char *body)
{
    static const sgi_fetch_header_line type = {SGI_STR_INIT("Content-Type"),
                                               SGI_STR_INIT("application/json")};
    assert_int_equal(fetch_request(rig, seen, body ? SGI_FETCH_POST : SGI_FETCH_GET,
                                   &type, body ? 1 : 0, body),
                     SEGUE_OK);
}

void fetch_start_once(fetch_rig *rig, fetch_seen *seen, const char *body)
{
    rig->once = true;
    fetch_start(rig, seen, body);
    rig->once = false;
}

void fetch_pause(fetch_seen *seen, bool paused)
{
    sgi_runtime_lock(seen->rig->rt);
    sgi_fetch_set_paused(seen->fetch, paused);
    sgi_runtime_unlock(seen->rig->rt);
}

void fetch_cancel(fetch_seen *seen)
{
    sgi_runtime_lock(seen->rig->rt);
    sgi_fetch_cancel(seen->fetch);
    sgi_runtime_unlock(seen->rig->rt);
}

int32_t fetch_exchange(fetch_rig *rig, http_line *line, const char *body)
{
    fetch_seen seen = {0};
    fetch_start(rig, &seen, body);
    if (line->fd < 0)
        RUN_UNTIL(rig->rt, http_peer_accept(&rig->peer, line));
    http_line_clear(line);
    RUN_UNTIL(rig->rt, http_line_asked(line));
    http_line_say(line, FETCH_ANSWER("2", "{}"));
    RUN_UNTIL(rig->rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_int_equal(seen.total, 2);
    return seen.status;
}

void fetch_open_stream(fetch_rig *rig, fetch_seen *seen, http_line *line)
{
    fetch_start(rig, seen, "{}");
    RUN_UNTIL(rig->rt, http_peer_accept(&rig->peer, line));
    RUN_UNTIL(rig->rt, http_line_asked(line));
}
