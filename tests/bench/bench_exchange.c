/* What an HTTP exchange by hand costs beside the library's own listener: the same call of
 * echo, many times, one after the other, in an inline runtime.
 *
 *   bench_exchange [--cpu N] hand|socket CALLS
 *
 * hand: this program is the host, which has the head of each request in parts and drops
 * the answer. socket: a child process calls over one connection. The program prints the
 * processor time of this process for each call. A tool that counts instructions sees the
 * library alone: run.py uses the difference of two numbers of calls. */
#include "bench.h"

#include <segue/segue_ext.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http_line.h"
#include "tools.h"

#define FIELDS 16
#define ANSWER_SIZE ((size_t)16 * 1024)
#define LONGEST_MS 100

typedef struct host {
    segue_runtime *runtime;
    segue_listener *listener;
    http_text request;
    segue_http_field fields[FIELDS];
    segue_exchange_head head;
    bool is_answered;
    bool is_over;
} host;

static void open_server(host *h, bool by_hand)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_listen_options listen = SEGUE_LISTEN_OPTIONS_INIT;
    segue_server *server;
    bench_tools_set_limits(&options);
    if (segue_runtime_new(NULL, &h->runtime, NULL) != SEGUE_OK ||
        segue_server_new(h->runtime, &options, &server, NULL) != SEGUE_OK)
        bench_fail("the server cannot be made");
    bench_tools_add(h->runtime, server);
    segue_status status = by_hand
                              ? segue_listener_open(server, &listen, &h->listener, NULL)
                              : segue_server_listen(server, &listen, &h->listener, NULL);
    if (status != SEGUE_OK)
        bench_fail("there is no listener");
    segue_server_free(server);
}

static void run_once(const host *h)
{
    if (segue_runtime_dispatch(h->runtime, LONGEST_MS, 0, NULL) != SEGUE_OK)
        bench_fail("the runtime has ended");
}

/* ---- by hand ---- */

static void on_head(void *user, segue_exchange *exchange, int32_t status,
                    const segue_http_field *headers, size_t count, const char *bytes,
                    size_t len)
{
    host *h = user;
    (void)headers;
    (void)bytes;
    h->is_answered = status == 200 && count && len;
    segue_exchange_sent(exchange, len);
}

static void on_body(void *user, segue_exchange *exchange, const char *bytes, size_t len)
{
    (void)user;
    (void)bytes;
    segue_exchange_sent(exchange, len);
}

static void on_end(void *user, segue_exchange *exchange, segue_status status)
{
    host *h = user;
    (void)exchange;
    h->is_over = status == SEGUE_OK;
}

/* Cuts the request into the parts that an HTTP server has read. */
static void cut_request(host *h)
{
    char *line = h->request.bytes, *end;
    segue_exchange_head head = SEGUE_EXCHANGE_HEAD_INIT;
    h->head = head;
    h->head.method = "POST";
    h->head.target = "/mcp";
    h->head.headers = h->fields;
    h->head.local = h->head.peer = "127.0.0.1:4711";
    while ((line = strstr(line, "\r\n") + 2), (end = strstr(line, "\r\n")) != line) {
        char *colon = strchr(line, ':');
        if (h->head.header_count == FIELDS)
            bench_fail("the request has too many headers");
        h->fields[h->head.header_count++] = (segue_http_field){
            line, (size_t)(colon - line), colon + 2, (size_t)(end - colon) - 2};
    }
    h->head.body = line + 2;
    h->head.body_len = h->request.len - (size_t)(line + 2 - h->request.bytes);
    h->head.is_whole = 1;
}

static void call_by_hand(host *h)
{
    segue_exchange *exchange;
    segue_exchange_events events = SEGUE_EXCHANGE_EVENTS_INIT;
    events.user = h;
    events.on_head = on_head;
    events.on_body = on_body;
    events.on_end = on_end;
    h->is_answered = h->is_over = false;
    if (segue_exchange_open(h->listener, &h->head, &events, &exchange, NULL) != SEGUE_OK)
        bench_fail("segue_exchange_open");
    while (!h->is_over)
        run_once(h);
    segue_exchange_free(exchange);
    if (!h->is_answered)
        bench_fail("the answer is none");
}

static void run_by_hand(host *h, int64_t calls)
{
    http_write_request(&h->request, 0, "tools/call", "echo",
                       "\"name\":\"echo\",\"arguments\":{\"text\":\"a quick fox\"},",
                       NULL);
    cut_request(h);
    for (int64_t i = 0; i < calls; i++)
        call_by_hand(h);
}

/* ---- the own listener ---- */

_Noreturn static void call_by_socket(const host *h, int64_t calls)
{
    http_text request;
    char answer[ANSWER_SIZE];
    int port = atoi(strrchr(segue_listener_url(h->listener), ':') + 1);
    http_write_request(&request, port, "tools/call", "echo",
                       "\"name\":\"echo\",\"arguments\":{\"text\":\"a quick fox\"},",
                       NULL);
    int fd = http_connect(port);
    for (int64_t i = 0; i < calls; i++) {
        http_send(fd, &request);
        http_read_answer(fd, answer, sizeof answer);
    }
    _exit(0);
}

static void run_by_socket(host *h, int64_t calls)
{
    int status = -1;
    pid_t child = fork();
    if (child < 0)
        bench_fail("no process");
    if (child == 0)
        call_by_socket(h, calls);
    while (waitpid(child, &status, WNOHANG) == 0)
        run_once(h);
    if (status != 0)
        bench_fail("the calls have failed");
}

int main(int argc, char **argv)
{
    static host h;
    bench_pin(&argc, &argv);
    bool by_hand = argc == 3 && strcmp(argv[1], "hand") == 0;
    int64_t calls = bench_number(argc, argv, 2, 0);
    if (calls < 1 || (!by_hand && strcmp(argv[1], "socket") != 0))
        bench_fail("hand or socket, and a number of calls");
    open_server(&h, by_hand);
    int64_t cpu = bench_cpu_ns(0);
    if (by_hand)
        run_by_hand(&h, calls);
    else
        run_by_socket(&h, calls);
    bench_say("server_cpu_us", (double)(bench_cpu_ns(0) - cpu) / (double)calls / 1000);
    segue_listener_free(h.listener);
    segue_runtime_free(h.runtime);
    return 0;
}
