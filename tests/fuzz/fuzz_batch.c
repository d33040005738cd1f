/* Batches to a server of 2025-03-26: any bytes, and batches made of requests,
 * notifications, answers and invalid items. Meanwhile their calls end in any order, are
 * cancelled, or lose their connection, and allocations fail.
 *
 * The checks: every line that comes back is JSON. An array holds only answers. When all
 * calls have ended no batch is open, unless the conversation was closed. All memory is
 * freed. */
#include "engine/conversation/batch.h"
#include "engine/server/call.h"
#include "support/fake_host.h"
#include "support/fuzz_input.h"
#include "support/test_mem.h"

#include <stdarg.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_STEPS 200
#define MAX_LINE 4096

static test_mem tm;
static fake_host host;
static segue_server *server;
static sgi_conn *conn;
static fuzz_input in;
static char line[MAX_LINE];
static size_t len;

static const char hello[] =
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2025-03-26\"}}\n";

/* ---- the client ---- */

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line + len, sizeof line - len, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof line - len)
        len += (size_t)n;
    else
        line[len] = 0;
}

static void add_request(const char *method, const char *params)
{
    static const char *const ids[] = {"1", "2", "3", "\"a\"", "\"\\u0041\"", "1.0", "4"};
    add("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s}}",
        ids[fuzz_below(&in, 7)], method, params);
}

static void add_item(void)
{
    static const char *const odd[] = {
        "7",
        "[]",
        "{}",
        "null",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
        "{\"jsonrpc\":\"1.0\",\"id\":2,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":7}"};
    switch (fuzz_below(&in, 8)) {
    case 0:
        add("%s", odd[fuzz_below(&in, 9)]);
        break;
    case 1:
        add("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
            "\"requestId\":%u}}",
            1 + fuzz_below(&in, 4));
        break;
    case 2:
        add_request("tools/list", "");
        break;
    case 3:
        add_request(fuzz_one_in(&in, 2) ? "initialize" : "no/such", "");
        break;
    case 4:
    case 5:
        add_request("tools/call", "\"name\":\"tool\",\"_meta\":{\"progressToken\":1}");
        break;
    default:
        add_request("ping", "");
    }
}

/* Sends the line whole, or cut in two. */
static void send_line(void)
{
    add("\n");
    size_t cut = fuzz_one_in(&in, 4) ? fuzz_byte(&in) : len;
    if (cut > len)
        cut = len;
    sgi_conn_add_input(conn, line, cut);
    sgi_conn_add_input(conn, line + cut, len - cut);
}

static void send_batch(void)
{
    len = 0;
    add("[");
    for (uint32_t n = fuzz_below(&in, 8), i = 0; i < n; i++) {
        if (i)
            add(",");
        add_item();
    }
    add("]");
    send_line();
}

static void send_single(void)
{
    len = 0;
    add_item();
    send_line();
}

static void send_bytes(void)
{
    size_t n = fuzz_byte(&in);
    if (n > in.left)
        n = in.left;
    sgi_conn_add_input(conn, (const char *)in.p, n);
    sgi_conn_add_input(conn, "\n", 1);
    in.p += n;
    in.left -= n;
}

/* ---- what comes back ---- */

static void check_array(sgi_json array)
{
    sgi_json item;
    size_t at = 0;
    int32_t count = 0;
    while (sgi_json_next_item(array, &at, &item)) {
        sgi_message message;
        count++;
        fuzz_check(sgi_conn_parse_batch_item(&host.engine, item, &message));
        fuzz_check(message.kind == SGI_MESSAGE_RESULT ||
                   message.kind == SGI_MESSAGE_ERROR);
    }
    fuzz_check(count > 0 && count <= SGI_BATCH_MAX);
}

static void check_output(void)
{
    sgi_buf out;
    sgi_buf_init(&out, &tm.mem);
    sgi_conn_take_output(conn, &out);
    sgi_str left = sgi_buf_str(&out);
    test_mem_rearm(&tm); /* the checks have memory */
    while (left.n) {
        const char *end = memchr(left.p, '\n', left.n);
        fuzz_check(end != NULL);
        sgi_str text = {left.p, (size_t)(end - left.p)};
        fuzz_check(sgi_json_read(&host.engine.reader, text, NULL, 0, NULL, NULL));
        if (sgi_json_kind_of(text) == SGI_JSON_ARRAY)
            check_array(text);
        else
            fuzz_check(sgi_json_kind_of(text) == SGI_JSON_OBJECT);
        left = (sgi_str){end + 1, left.n - text.n - 1};
    }
    sgi_buf_free(&out);
}

/* ---- the tool ---- */

static segue_call *some_call(uint32_t which)
{
    segue_call *call;
    LIST_FOREACH(call, &server->calls.running, link)
        if (call->held && which-- == 0)
            return call;
    return NULL;
}

static void end_call(segue_call *call)
{
    if (!call)
        return;
    if (sgi_call_complete(call, NULL) == SEGUE_OK)
        fuzz_check(sgi_call_progress(call, 1, 0, NULL) == SEGUE_E_TERMINAL);
    sgi_call_free(call);
}

static void end_all(void)
{
    test_mem_rearm(&tm);
    do {
        end_call(some_call(0));
        fake_host_advance(&host, 1000);
        fake_host_deliver(&host);
    } while (some_call(0));
}

/* ---- the play ---- */

static void open_conn(void)
{
    test_mem_rearm(&tm);
    fuzz_check(sgi_server_accept(server, &host, &conn) == SEGUE_OK);
    sgi_conn_start(conn);
    sgi_conn_add_input(conn, hello, sizeof hello - 1);
    check_output();
}

static void close_conn(void)
{
    bool cut = fuzz_one_in(&in, 2);
    if (cut)
        sgi_conn_detach(conn);
    end_all();
    if (cut)
        return;
    fuzz_check(conn->closing || (!conn->batches && !conn->batch_bytes));
    check_output();
    sgi_conn_detach(conn);
}

static void step(void)
{
    segue_call *call;
    switch (fuzz_below(&in, 10)) {
    case 0:
        close_conn();
        open_conn();
        break;
    case 1:
        send_single();
        break;
    case 2:
        send_bytes();
        break;
    case 3:
        tm.fail_at = 1 + fuzz_below(&in, 64);
        send_batch();
        break;
    case 4:
    case 5:
        end_call(some_call(fuzz_below(&in, 4)));
        break;
    case 6:
        if ((call = some_call(fuzz_below(&in, 4))))
            sgi_call_progress(call, 1, 0, NULL);
        break;
    default:
        send_batch();
    }
    fake_host_deliver(&host);
    check_output();
    if (conn->closing) {
        close_conn();
        open_conn();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    in = (fuzz_input){data, size};
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 5);
    server = fake_server_new(&host);
    open_conn();
    for (int i = 0; i < MAX_STEPS && in.left; i++)
        step();
    close_conn();
    fake_server_end(server);
    fake_host_free(&host);
    fuzz_check(tm.live == 0);
    return 0;
}
