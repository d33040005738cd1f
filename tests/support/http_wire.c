/* Takes the output as a transport does: it first reads the bytes, then consumes them. */
#include "http_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static sgi_str find_header(void *user, sgi_str name, bool *more)
{
    const http_wire *wire = user;
    *more = false;
    for (size_t i = 0; i < 4 && wire->more_names[i]; i++)
        if (sgi_str_eq(name, sgi_str_of(wire->more_names[i]))) {
            *more = i + 1 < 4 && wire->more_names[i + 1] &&
                    !strcmp(wire->more_names[i], wire->more_names[i + 1]);
            return sgi_str_of(wire->more_values[i]);
        }
    return (sgi_str){0};
}

void http_wire_init(http_wire *wire, segue_server *server, const char *name)
{
    *wire = (http_wire){.server = server, .who = sgi_server_get_principal(server, name)};
    wire->head = (sgi_http_request_head){.takes_events = true,
                                         .max_streams = 16,
                                         .max_sessions = 100,
                                         .session_idle_ms = 60000,
                                         .find = find_header};
    sgi_buf_init(&wire->text, &sgi_mem_libc);
}

void http_wire_cut(http_wire *wire)
{
    if (!wire->conn)
        return;
    sgi_conn *spare = sgi_serve_end_exchange(wire->conn, wire);
    if (spare)
        wire->spare = spare;
    sgi_conn_unref(wire->conn);
    wire->conn = NULL;
}

void http_wire_free(http_wire *wire)
{
    http_wire_cut(wire);
    sgi_serve_free_spare_conn(wire->spare);
    sgi_serve_unref_principal(wire->who);
    sgi_buf_free(&wire->text);
}

static void look(http_wire *wire)
{
    sgi_serve_get_answer_state(wire->conn, &wire->answer);
    if (wire->answer.session)
        snprintf(wire->session, sizeof wire->session, "%s", wire->answer.session);
}

static int32_t begun(http_wire *wire)
{
    wire->conn = wire->verdict.conn;
    if (!wire->conn)
        return wire->verdict.status;
    sgi_conn_ref(wire->conn);
    look(wire);
    return wire->answer.answered ? wire->answer.status : 0;
}

static void begin(http_wire *wire)
{
    http_wire_cut(wire);
    sgi_buf_reset(&wire->text, SIZE_MAX);
    wire->verdict = (sgi_http_serve_verdict){0};
    wire->head.user = wire;
}

int32_t http_wire_post(http_wire *wire, const char *body)
{
    begin(wire);
    sgi_serve_post(wire->server, wire->who, &wire->head, sgi_str_of(body), wire,
                   &wire->spare, &wire->verdict);
    return begun(wire);
}

int32_t http_wire_get(http_wire *wire, const char *last_event)
{
    begin(wire);
    wire->head.last_event = sgi_str_of(last_event);
    sgi_serve_get(wire->server, wire->who, &wire->head, wire, &wire->verdict);
    return begun(wire);
}

int32_t http_wire_delete(http_wire *wire)
{
    begin(wire);
    sgi_serve_delete(wire->server, wire->who, &wire->head, &wire->verdict);
    return wire->verdict.status;
}

int32_t http_wire_modern(http_wire *wire, const char *id, const char *method,
                         const char *params, const char *capabilities)
{
    snprintf(wire->body, sizeof wire->body,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s%s"
             "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
             "\"io.modelcontextprotocol/clientCapabilities\":%s,"
             "\"progressToken\":\"p\"}}}",
             id, method, params, *params ? "," : "", capabilities);
    wire->head.version = SGI_STR("2026-07-28");
    wire->head.method = sgi_str_of(method);
    return http_wire_post(wire, wire->body);
}

int32_t http_wire_legacy(http_wire *wire, const char *id, const char *method,
                         const char *params)
{
    snprintf(wire->body, sizeof wire->body,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s%s"
             "\"_meta\":{\"progressToken\":\"p\"}}}",
             id, method, params, *params ? "," : "");
    return http_wire_post(wire, wire->body);
}

bool http_wire_open(http_wire *wire, const char *version)
{
    char params[64];
    wire->head.version = wire->head.session = (sgi_str){0};
    wire->session[0] = 0;
    snprintf(params, sizeof params, "\"protocolVersion\":\"%s\"", version);
    http_wire_legacy(wire, "1", "initialize", params);
    http_wire_text(wire);
    http_wire_cut(wire);
    wire->head.version = sgi_str_of(version);
    wire->head.session = sgi_str_of(wire->session);
    if (!wire->session[0])
        return false;
    return http_wire_post(wire, "{\"jsonrpc\":\"2.0\","
                                "\"method\":\"notifications/initialized\"}") == 202;
}

const char *http_wire_text(http_wire *wire)
{
    sgi_buf taken;
    if (wire->conn && sgi_conn_transport(wire->conn) == wire) {
        look(wire);
        if (!wire->answer.open) {
            sgi_buf_init(&taken, sgi_engine_mem(wire->server->engine));
            sgi_conn_take_output(wire->conn, &taken);
            sgi_buf_add_str(&wire->text, sgi_buf_str(&taken));
            sgi_buf_free(&taken);
        }
    }
    return sgi_buf_terminate(&wire->text) ? wire->text.p : "";
}

segue_call *http_wire_call(segue_server *server)
{
    fake_host_deliver(server->engine->host.user);
    segue_call *call = LIST_FIRST(&server->calls.running);
    return call && call->held ? call : NULL;
}

int http_wire_count(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

bool http_wire_says(http_wire *wire, const char *part)
{
    return strstr(http_wire_text(wire), part) != NULL;
}

segue_call *http_wire_start(http_wire *wire, const char *id)
{
    assert_int_equal(http_wire_legacy(wire, id, "tools/call", "\"name\":\"tool\""), 0);
    segue_call *call = http_wire_call(wire->server);
    assert_non_null(call);
    return call;
}

void http_wire_finish(segue_call *call)
{
    fake_host *host = call->handle.engine->host.user;
    sgi_call_complete(call, NULL);
    sgi_call_free(call);
    fake_host_deliver(host);
}

/* ---- the rig ---- */

void http_rig_begin(http_rig *rig, const char *name_of_b)
{
    test_mem_init(&rig->mem);
    fake_host_init(&rig->host, &rig->mem.mem, 81);
    rig->server = fake_server_new(&rig->host);
    http_wire_init(&rig->a, rig->server, "ada");
    http_wire_init(&rig->b, rig->server, name_of_b);
}

void http_rig_end(http_rig *rig)
{
    http_wire_free(&rig->a);
    http_wire_free(&rig->b);
    fake_server_end(rig->server);
    fake_host_free(&rig->host);
    assert_int_equal(rig->mem.live, 0);
}

void http_rig_open(http_rig *rig)
{
    assert_true(http_wire_open(&rig->a, "2025-11-25"));
    rig->b.head.version = rig->a.head.version;
    rig->b.head.session = rig->a.head.session;
}
