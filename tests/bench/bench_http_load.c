/* Load for a server over HTTP: starts the server and sends prepared bytes, so that only
 * the server is measured. This process does not use Segue.
 *
 *   bench_http_load [--cpu N] calls CONNECTIONS MILLISECONDS
 *                   [--threads N] [--streams N] [--work US] [--warm MS]
 *                   [--keyed 1] COMMAND...
 *   bench_http_load [--cpu N] idle COUNT COMMAND...
 *   bench_http_load [--cpu N] drain SEGMENTS BYTES COMMAND...
 *   bench_http_load [--cpu N] reports COUNT CALLS COMMAND...
 *
 * calls: each connection always has one call of echo under way. All requests have the
 * same bytes, so all answers have one length; length and status of each are checked. An
 * answer that comes late on a busy machine may be an event stream and longer. At most one
 * answer in ten may be of that form.
 * --threads: this many threads share the connections. --streams: this many idle event
 * streams are open beside them. --work: the tool computes for this time. --warm: earlier
 * calls do not count (200 ms). --keyed 1: each call has an idempotency key of its own.
 * idle: the cost of this many connections that have been
 * used once. drain: how fast events of a task come out of the server when their reader
 * ignores them. reports: the same for the reports of progress of a plain call. CALLS
 * calls warm the server up, and the median of CALLS further calls is printed.
 *
 * The command prints its port first. It may be bench_raw, which answers anything. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child.h"
#include "http_line.h"

#define MAX_THREADS 16
#define EVENTS 256
#define LATENCIES_US 1000000 /* the last place counts all that took longer */
#define ANSWER_SIZE ((size_t)64 * 1024)
#define LEARNING 8    /* number of calls */
#define LATE_SHARE 10 /* at most a tenth of the answers may come late */
#define LAST_CHUNK "0\r\n\r\n"
#define TAIL (sizeof LAST_CHUNK - 1)
#define KEY_DIGITS 16
#define KEY "0000000000000000"
#define KEYS_EACH INT64_C(1000000000000) /* more than a thread uses */

static const char text_argument[] = "\"text\":\"The quick brown fox\"";

typedef struct line {
    int fd;
    size_t got;      /* received bytes of the answer */
    char tail[TAIL]; /* the last of them */
    int64_t sent_ns;
} line;

typedef struct load {
    bench_child server;
    http_text request;
    size_t answer_len;
    size_t connections;
    size_t threads;
    size_t streams;
    int64_t work_us;
    bool keyed;
    int64_t warm_ms;
    int64_t begin_ns; /* answers count between the two times */
    int64_t end_ns;
} load;

typedef struct worker {
    const load *load;
    http_text request;
    char *key; /* the digits of the idempotency key in the request; NULL = no key */
    int64_t keys;
    pthread_t thread;
    line *lines;
    size_t count;
    int epoll;
    int64_t answers;
    int64_t late;        /* answers that were longer: event streams */
    uint32_t *latencies; /* latencies[n]: number of answers that took n microseconds */
} worker;

/* ---- a worker ---- */

static void write_key(char *to, int64_t number)
{
    for (size_t i = KEY_DIGITS; i--; number /= 10)
        to[i] = (char)('0' + number % 10);
}

static void ask(worker *w, line *l, int64_t now)
{
    l->sent_ns = now;
    if (w->key)
        write_key(w->key, ++w->keys);
    http_send(l->fd, &w->request);
}

/* On a busy machine the time may pass without an answer. Then the first one after it
 * counts. */
static bool is_over(const worker *w, int64_t now)
{
    return now >= w->load->end_ns && w->answers;
}

static void note_answer(worker *w, line *l, int64_t now)
{
    int64_t us = (now - l->sent_ns) / 1000;
    if (now >= w->load->begin_ns && !is_over(w, now)) {
        w->answers++;
        w->latencies[us < LATENCIES_US ? us : LATENCIES_US - 1]++;
    }
    l->got = 0;
}

static void keep_tail(line *l, const char *bytes, size_t len)
{
    size_t taken = len < TAIL ? len : TAIL;
    memmove(l->tail, l->tail + taken, TAIL - taken);
    memcpy(l->tail + TAIL - taken, bytes + len - taken, taken);
}

/* Returns true when the longer answer is complete. */
static bool take_late(worker *w, const line *l)
{
    if (l->got > ANSWER_SIZE)
        bench_fail("an answer is too long");
    if (memcmp(l->tail, LAST_CHUNK, TAIL) != 0)
        return false;
    w->late++;
    return true;
}

/* Reads once; returns true when the answer is complete. */
static bool take_answer(worker *w, line *l)
{
    static const char ok[] = "HTTP/1.1 200 ";
    char bytes[ANSWER_SIZE];
    ssize_t got = recv(l->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0)
        bench_fail("the server closed a connection");
    if (!l->got && ((size_t)got < sizeof ok || memcmp(bytes, ok, sizeof ok - 1) != 0))
        bench_fail("an answer is none");
    l->got += (size_t)got;
    keep_tail(l, bytes, (size_t)got);
    return l->got > w->load->answer_len ? take_late(w, l) : l->got == w->load->answer_len;
}

static void add_lines(worker *w)
{
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->lines = calloc(w->count, sizeof *w->lines);
    w->latencies = calloc(LATENCIES_US, sizeof *w->latencies);
    if (w->epoll < 0 || !w->lines || !w->latencies)
        bench_fail("out of memory");
    for (size_t i = 0; i < w->count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &w->lines[i]}};
        w->lines[i].fd = http_connect(w->load->server.port);
        if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->lines[i].fd, &event) != 0)
            bench_fail("epoll_ctl");
    }
}

static void *run_worker(void *user)
{
    worker *w = user;
    struct epoll_event events[EVENTS];
    int64_t now = bench_now_ns();
    for (size_t i = 0; i < w->count; i++)
        ask(w, &w->lines[i], now);
    while (!is_over(w, now)) {
        int ready = epoll_wait(w->epoll, events, EVENTS, 10000);
        if (ready <= 0)
            bench_fail("the server does not answer");
        for (int i = 0; i < ready; i++) {
            line *l = events[i].data.ptr;
            if (!take_answer(w, l))
                continue;
            now = bench_now_ns();
            note_answer(w, l, now);
            ask(w, l, now);
        }
    }
    return NULL;
}

/* ---- calls ---- */

static void write_call(load *l)
{
    char members[256];
    if (l->work_us)
        snprintf(members, sizeof members,
                 "\"name\":\"work\",\"arguments\":{%s,\"us\":%lld},", text_argument,
                 (long long)l->work_us);
    else
        snprintf(members, sizeof members, "\"name\":\"echo\",\"arguments\":{%s},",
                 text_argument);
    http_write_request(&l->request, l->server.port, "tools/call",
                       l->work_us ? "work" : "echo", members,
                       l->keyed ? "\"dev.segue/idempotencyKey\":\"" KEY "\"," : NULL);
}

/* Makes a few calls first: the first call of a server may take so long that its answer
 * has another form. */
static void learn_length(load *l)
{
    char answer[ANSWER_SIZE];
    int fd = http_connect(l->server.port);
    for (int i = 0; i < LEARNING; i++) {
        http_send(fd, &l->request);
        l->answer_len = http_read_answer(fd, answer, sizeof answer);
    }
    close(fd);
}

static void open_streams(const load *l)
{
    http_text request;
    http_write_request(&request, l->server.port, "subscriptions/listen", NULL,
                       "\"notifications\":{\"toolsListChanged\":true},", NULL);
    for (size_t i = 0; i < l->streams; i++) {
        int fd = http_connect(l->server.port);
        http_send(fd, &request);
        http_read_event(fd);
    }
}

static void sleep_until(int64_t ns)
{
    struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

static double latency_us(const uint32_t *latencies, int64_t answers, double part)
{
    int64_t rank = (int64_t)((double)answers * part);
    int64_t us = 0;
    for (int64_t seen = latencies[0]; seen <= rank && us + 1 < LATENCIES_US;)
        seen += latencies[++us];
    return (double)us;
}

static void say_calls(const load *l, const worker *workers, double server_cpu,
                      double load_cpu)
{
    double spent = (double)(l->end_ns - l->begin_ns);
    uint32_t *latencies = workers[0].latencies;
    int64_t answers = workers[0].answers;
    int64_t late = workers[0].late;
    for (size_t i = 1; i < l->threads; i++) {
        answers += workers[i].answers;
        late += workers[i].late;
        for (size_t us = 0; us < LATENCIES_US; us++)
            latencies[us] += workers[i].latencies[us];
    }
    if (late * LATE_SHARE > answers)
        bench_fail("answers differ in length: not all are what they should be");
    bench_say("calls_per_s", (double)answers / spent * 1e9);
    bench_say("server_cpu_us", server_cpu / (double)answers / 1000);
    bench_say("server_busy", server_cpu / spent);
    bench_say("load_busy", load_cpu / spent);
    bench_say("p50_us", latency_us(latencies, answers, .5));
    bench_say("p99_us", latency_us(latencies, answers, .99));
    bench_say("answer_bytes", (double)l->answer_len);
}

static void run_calls(load *l, char **command, int64_t run_ms)
{
    static worker workers[MAX_THREADS];
    bench_child_start(&l->server, command);
    write_call(l);
    learn_length(l);
    open_streams(l);
    for (size_t i = 0; i < l->threads; i++) {
        workers[i].load = l;
        workers[i].count = l->connections / l->threads;
        workers[i].request = l->request;
        workers[i].key = l->keyed ? strstr(workers[i].request.bytes, KEY) : NULL;
        workers[i].keys = (int64_t)(i + 1) * KEYS_EACH;
        add_lines(&workers[i]);
    }
    l->begin_ns = bench_now_ns() + l->warm_ms * 1000000;
    l->end_ns = l->begin_ns + run_ms * 1000000;
    for (size_t i = 0; i < l->threads; i++)
        if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) != 0)
            bench_fail("no thread");
    sleep_until(l->begin_ns);
    int64_t server_cpu = bench_cpu_ns(l->server.pid);
    int64_t load_cpu = bench_cpu_ns(0);
    sleep_until(l->end_ns);
    server_cpu = bench_cpu_ns(l->server.pid) - server_cpu;
    load_cpu = bench_cpu_ns(0) - load_cpu;
    for (size_t i = 0; i < l->threads; i++)
        pthread_join(workers[i].thread, NULL);
    say_calls(l, workers, (double)server_cpu, (double)load_cpu);
    bench_child_end(&l->server);
}

static void parse_calls(load *l, int argc, char **argv)
{
    int at = 4;
    if (argc < 5)
        bench_fail("calls CONNECTIONS MILLISECONDS COMMAND...");
    l->connections = (size_t)atoll(argv[2]);
    l->threads = 1;
    l->warm_ms = 200;
    for (; at + 2 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        int64_t value = atoll(argv[at + 1]);
        if (strcmp(argv[at], "--threads") == 0)
            l->threads = (size_t)value;
        else if (strcmp(argv[at], "--streams") == 0)
            l->streams = (size_t)value;
        else if (strcmp(argv[at], "--work") == 0)
            l->work_us = value;
        else if (strcmp(argv[at], "--warm") == 0)
            l->warm_ms = value;
        else if (strcmp(argv[at], "--keyed") == 0)
            l->keyed = value != 0;
        else
            bench_fail("no such option");
    }
    if (l->threads < 1 || l->threads > MAX_THREADS || l->connections < l->threads)
        bench_fail("1 to 16 threads, and a connection for each");
    run_calls(l, argv + at, atoll(argv[3]));
}

/* ---- idle ---- */

static void call_one(const load *l, size_t connections)
{
    char answer[ANSWER_SIZE];
    for (size_t i = 0; i < connections; i++) {
        int fd = http_connect(l->server.port); /* the connection stays open */
        http_send(fd, &l->request);
        if (http_read_answer(fd, answer, sizeof answer) != l->answer_len)
            bench_fail("answers differ in length");
    }
}

static void run_idle(load *l, size_t count, char **command)
{
    bench_child_start(&l->server, command);
    write_call(l);
    learn_length(l);
    call_one(l, 16);
    double before = bench_resident_mib(l->server.pid);
    call_one(l, count);
    bench_say("idle_mib", bench_resident_mib(l->server.pid) - before);
    bench_say("server_mib", before);
    bench_child_end(&l->server);
}

/* ---- drain ---- */

static void start_task(const load *l, long long segments, long long bytes, char id[128])
{
    char answer[ANSWER_SIZE];
    char members[256];
    http_text request;
    snprintf(members, sizeof members,
             "\"name\":\"stream\",\"arguments\":{\"n\":%lld,\"bytes\":%lld},", segments,
             bytes);
    http_write_request(&request, l->server.port, "tools/call", "stream", members, NULL);
    int fd = http_connect(l->server.port);
    http_send(fd, &request);
    http_read_answer(fd, answer, sizeof answer);
    const char *task = strstr(answer, "\"taskId\":\"");
    if (!task || sscanf(task, "\"taskId\":\"%100[^\"]", id) != 1)
        bench_fail("there is no task");
    close(fd);
}

static void run_drain(load *l, long long segments, long long bytes, char **command)
{
    char id[128];
    char members[256];
    bench_child_start(&l->server, command);
    int64_t begin = bench_now_ns();
    int64_t cpu = bench_cpu_ns(l->server.pid);
    start_task(l, segments, bytes, id);
    snprintf(members, sizeof members, "\"taskId\":\"%s\",", id);
    http_write_request(&l->request, l->server.port, "tasks/stream", id, members, NULL);
    int fd = http_connect(l->server.port);
    http_send(fd, &l->request);
    int64_t events = http_drain_events(fd);
    if (events < segments)
        bench_fail("segments are missing");
    cpu = bench_cpu_ns(l->server.pid) - cpu;
    bench_say("segments_per_s",
              (double)segments * 1e9 / (double)(bench_now_ns() - begin));
    bench_say("server_cpu_us", (double)cpu / (double)segments / 1000);
    bench_child_end(&l->server);
}

/* ---- reports ---- */

typedef struct reported {
    int64_t events; /* with the answer */
    int64_t ns;
    int64_t cpu_ns;
} reported;

static reported call_report(const load *l)
{
    int64_t cpu = bench_cpu_ns(l->server.pid);
    int64_t begin = bench_now_ns();
    int fd = http_connect(l->server.port);
    http_send(fd, &l->request);
    reported found = {.events = http_drain_events(fd)};
    found.ns = bench_now_ns() - begin;
    found.cpu_ns = bench_cpu_ns(l->server.pid) - cpu;
    close(fd);
    return found;
}

static int faster(const void *a, const void *b)
{
    double x = (double)((const reported *)a)->events / (double)((const reported *)a)->ns;
    double y = (double)((const reported *)b)->events / (double)((const reported *)b)->ns;
    return (x > y) - (x < y);
}

static void run_reports(load *l, long long count, size_t calls, char **command)
{
    char members[256];
    reported *found = calloc(calls, sizeof *found);
    if (!found || !calls)
        bench_fail("no calls");
    bench_child_start(&l->server, command);
    snprintf(members, sizeof members, "\"name\":\"report\",\"arguments\":{\"n\":%lld},",
             count);
    http_write_request(&l->request, l->server.port, "tools/call", "report", members,
                       "\"progressToken\":\"p\",");
    for (size_t i = 0; i < calls; i++)
        call_report(l);
    for (size_t i = 0; i < calls; i++)
        found[i] = call_report(l);
    qsort(found, calls, sizeof *found, faster);
    reported median = found[calls / 2];
    free(found);
    bench_say("events_per_s", (double)median.events * 1e9 / (double)median.ns);
    bench_say("server_cpu_us", (double)median.cpu_ns / (double)median.events / 1000);
    bench_say("arrived", (double)(median.events - 1) / (double)count);
    bench_child_end(&l->server);
}

int main(int argc, char **argv)
{
    static load l;
    bench_pin(&argc, &argv);
    bench_allow_descriptors();
    if (argc > 4 && strcmp(argv[1], "calls") == 0)
        parse_calls(&l, argc, argv);
    else if (argc > 3 && strcmp(argv[1], "idle") == 0)
        run_idle(&l, (size_t)atoll(argv[2]), argv + 3);
    else if (argc > 4 && strcmp(argv[1], "drain") == 0)
        run_drain(&l, atoll(argv[2]), atoll(argv[3]), argv + 4);
    else if (argc > 4 && strcmp(argv[1], "reports") == 0)
        run_reports(&l, atoll(argv[2]), (size_t)atoll(argv[3]), argv + 4);
    else
        bench_fail("calls, idle, drain or reports, and a command");
    return 0;
}
