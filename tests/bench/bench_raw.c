/* The least that libwebsockets can do for HTTP: its raw-skt role on a libev loop, one
 * thread. It reads a request up to its blank line, skips as many bytes as content-length
 * says, and sends prepared bytes. It checks nothing, so libwebsockets and the sockets
 * alone limit its rate: the baseline of the HTTP figures.
 *
 *   bench_raw [--cpu N] [--port P] [--bytes N]
 *
 * --port 0 takes a free port; the port is printed on a line of its own. --bytes is the
 * length of a whole answer, head included. Ends when it is terminated. */
#include "bench.h"

#include <ev.h>
#include <libwebsockets.h>
#include <stdbool.h>
#include <strings.h>

#define LARGEST_ANSWER ((size_t)128 * 1024)
#define LARGEST_HEAD ((size_t)8 * 1024)

/* One per connection; libwebsockets allocates and clears it. */
typedef struct session {
    char head[LARGEST_HEAD];
    size_t len;
    size_t skip; /* bytes left of the body */
} session;

static unsigned char room[LWS_PRE + LARGEST_ANSWER + 256];
static size_t answer_len;

static void prepare_answer(size_t bytes)
{
    char *answer = (char *)room + LWS_PRE;
    char head[128];
    size_t body = bytes;
    size_t len = 0;
    /* The number of digits depends on the body's length, which depends on the digits. */
    for (int i = 0; i < 3; i++) {
        len = (size_t)snprintf(head, sizeof head,
                               "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                               "content-length: %zu\r\n\r\n",
                               body);
        if (len > bytes)
            bench_fail("an answer is longer than its head");
        body = bytes - len;
    }
    memcpy(answer, head, len);
    memset(answer + len, 'x', body);
    answer_len = bytes;
}

static size_t body_length(const char *head, size_t len)
{
    static const char name[] = "content-length:";
    for (const char *at = head; (at = memchr(at, '\n', len - (size_t)(at - head)));) {
        at++;
        if (len - (size_t)(at - head) < sizeof name)
            break;
        if (strncasecmp(at, name, sizeof name - 1) == 0)
            return strtoul(at + sizeof name - 1, NULL, 10);
    }
    return 0;
}

/* Keeps the head until it is complete; then returns true, and the bytes are those behind
 * it. */
static bool take_head(session *s, const char **bytes, size_t *len)
{
    size_t more = *len < sizeof s->head - s->len ? *len : sizeof s->head - s->len;
    size_t from = s->len > 3 ? s->len - 3 : 0;
    memcpy(s->head + s->len, *bytes, more);
    const char *end = memmem(s->head + from, s->len + more - from, "\r\n\r\n", 4);
    if (!end && s->len + more == sizeof s->head)
        bench_fail("a head is too long");
    size_t taken = end ? (size_t)(end + 4 - s->head) - s->len : more;
    *bytes += taken;
    *len -= taken;
    s->len += taken;
    return end != NULL;
}

/* Takes bytes of one request; returns false when more are needed to complete it. */
static bool take_request(session *s, const char **bytes, size_t *len)
{
    if (!*len)
        return false;
    if (!s->skip) {
        if (!take_head(s, bytes, len))
            return false;
        s->skip = body_length(s->head, s->len);
        s->len = 0;
        if (!s->skip)
            return true;
    }
    size_t skipped = *len < s->skip ? *len : s->skip;
    *bytes += skipped;
    *len -= skipped;
    s->skip -= skipped;
    return !s->skip;
}

static int serve(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                 size_t len)
{
    const char *bytes = in;
    if (reason != LWS_CALLBACK_RAW_RX)
        return 0;
    while (take_request(user, &bytes, &len))
        if (lws_write(wsi, room + LWS_PRE, answer_len, LWS_WRITE_RAW) < 0)
            return -1;
    return 0;
}

static const struct lws_protocols protocols[] = {
    {.name = "raw",
     .callback = serve,
     .per_session_data_size = sizeof(session),
     .tx_packet_size = LARGEST_ANSWER},
    {.name = NULL}};

static struct lws_context *open_context(void *loop, int port)
{
    void *loops[] = {loop};
    struct lws_context_creation_info info = {
        .port = port,
        .iface = "lo",
        .vhost_name = "bench",
        .protocols = protocols,
        .options = LWS_SERVER_OPTION_LIBEV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                   LWS_SERVER_OPTION_DISABLE_IPV6 |
                   LWS_SERVER_OPTION_ADOPT_APPLY_LISTEN_ACCEPT_CONFIG,
        .listen_accept_role = "raw-skt",
        .listen_accept_protocol = "raw",
        .foreign_loops = loops,
        .pt_serv_buf_size = 64 * 1024};
    lws_set_log_level(LLL_ERR, NULL);
    struct lws_context *context = lws_create_context(&info);
    if (!context)
        bench_fail("no libwebsockets context");
    struct lws_vhost *vhost = lws_create_vhost(context, &info);
    if (!vhost)
        bench_fail("cannot listen");
    printf("%d\n", lws_get_vhost_listen_port(vhost));
    fflush(stdout);
    return context;
}

int main(int argc, char **argv)
{
    int port = 0;
    size_t bytes = 300;
    bench_pin(&argc, &argv);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--port") == 0)
            port = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--bytes") == 0)
            bytes = strtoul(argv[i + 1], NULL, 10);
        else
            bench_fail("bench_raw [--cpu N] [--port P] [--bytes N]");
    }
    if (bytes > LARGEST_ANSWER)
        bench_fail("an answer has at most 131072 bytes");
    prepare_answer(bytes);
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct lws_context *context = open_context(loop, port);
    ev_run(loop, 0);
    lws_context_destroy(context);
    ev_loop_destroy(loop);
    return 0;
}
