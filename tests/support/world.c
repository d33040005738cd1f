#include "support/world.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define WAIT_MS 20000 /* of real time, before a message counts as lost */
#define QUIET_MS 1000

struct wire {
    wire *next;
    world *w;
    const char *principal;
    segue_transport *transport; /* PAIR */
    pid_t child;                /* STDIO */
    int to, from;
    char *history; /* all bytes received */
    size_t len, cap;
    size_t read_at; /* of the first line that nobody took in order */
    char **lines;   /* copies, in order; taken ones are NULL */
    size_t count, taken;
    char **kept; /* texts handed out */
    size_t kept_count;
    int closed;
    int detached;
    int stalled;
};

/* ---- clock and chance ---- */

static int64_t fake_now(void *user)
{
    return ((world *)user)->clock_ms;
}

static int64_t fake_wall(void *user)
{
    return WORLD_EPOCH + ((world *)user)->clock_ms;
}

uint32_t world_chance(world *w, uint32_t n)
{
    w->chance ^= w->chance << 13;
    w->chance ^= w->chance >> 7;
    w->chance ^= w->chance << 17;
    return n ? (uint32_t)(w->chance >> 16) % n : 0;
}

static int32_t fake_random(void *user, void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)world_chance(user, 256);
    return 0;
}

/* ---- PAIR: a runtime in this process ---- */

static void count_errors(void *user, int32_t level, const char *text)
{
    world *w = user;
    if (getenv("SEGUE_TEST_LOG"))
        fprintf(stderr, "[%d] %s\n", (int)level, text);
    if (level >= SEGUE_LOG_ERROR)
        w->log_count++;
}

static void say_principal(void *user, segue_transport *transport, const char **principal)
{
    world *w = user;
    for (wire *c = w->wires; c; c = c->next)
        if (!c->detached && c->transport == transport)
            *principal = c->principal;
}

static void open_store(world *w)
{
    segue_error *error = NULL;
    if (w->custom) {
        w->store = w->custom;
    } else if (w->store_kind == WORLD_SQLITE) {
        if (segue_store_sqlite(w->path, NULL, &w->store, &error) != SEGUE_OK)
            fail_msg("store: %s", segue_error_message(error));
    } else if (!w->store) {
        assert_int_equal(segue_store_memory(NULL, &w->store), SEGUE_OK);
    }
}

static void start_pair(world *w)
{
    segue_runtime_options options;
    segue_server_options server;
    segue_hooks hooks;
    segue_struct_init(&hooks, sizeof hooks, SEGUE_STRUCT_HOOKS);
    hooks.user = w;
    hooks.monotonic_ms = fake_now;
    hooks.wall_ms = fake_wall;
    hooks.random = fake_random;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_RUNTIME_OPTIONS);
    options.allocator = &w->mem.mem;
    options.user = w;
    options.log = count_errors;
    options.hooks = &hooks;
    assert_int_equal(segue_runtime_new(&options, &w->runtime, NULL), SEGUE_OK);
    open_store(w);
    segue_struct_init(&server, sizeof server, SEGUE_STRUCT_SERVER_OPTIONS);
    server.name = "fixtures";
    server.version = "1";
    server.store = w->store;
    server.user = w;
    server.principal = say_principal;
    if (w->tune)
        w->tune(&server);
    assert_int_equal(segue_server_new(w->runtime, &server, &w->server), SEGUE_OK);
    w->fixtures = fixtures_new(fake_now, w);
    assert_int_equal(fixtures_add(w->fixtures, w->runtime, w->server), SEGUE_OK);
}

/* A store on a thread of its own answers in real time. */
static int is_slow_store(const world *w)
{
    return w->store_kind == WORLD_SQLITE && !w->custom;
}

void world_run(world *w)
{
    int32_t ran = 1;
    if (w->place != WORLD_PAIR)
        return;
    for (int idle = 0; idle < 3; idle = ran ? 0 : idle + 1) {
        fixtures_tick(w->fixtures);
        segue_runtime_dispatch(w->runtime, is_slow_store(w) ? 2 : 0, 0, &ran);
    }
}

void world_advance(world *w, int64_t ms)
{
    int64_t end = w->clock_ms + ms;
    if (w->place != WORLD_PAIR)
        return;
    while (w->clock_ms < end) {
        int64_t step = end - w->clock_ms;
        int64_t next = fixtures_tick(w->fixtures);
        if (next >= 0 && next < step)
            step = next < 1 ? 1 : next;
        if (step > 50)
            step = 50;
        w->clock_ms += step;
        world_run(w);
    }
}

void world_jump(world *w, int64_t ms)
{
    w->clock_ms += ms;
    world_run(w);
}

static void stop_pair(world *w)
{
    for (wire *c = w->wires; c; c = c->next)
        c->detached = 1;
    segue_server_free(w->server);
    /* handlers that run hear of the end and give their calls up */
    segue_runtime_free(w->runtime);
    for (wire *c = w->wires; c; c = c->next)
        c->transport = NULL; /* a later one may stand at the same address */
    fixtures_tick(w->fixtures);
    fixtures_free(w->fixtures);
    w->server = NULL;
    w->runtime = NULL;
    if (w->store_kind == WORLD_SQLITE && !w->custom) {
        segue_store_free(w->store);
        w->store = NULL;
    }
}

int world_runs(const world *w, const char *tool)
{
    return fixtures_runs(w->fixtures, tool);
}

/* ---- the stage ---- */

void world_begin(world *w)
{
    static int number;
    if (!w->chance)
        w->chance = 0x9e3779b97f4a7c15u;
    if (!*w->path)
        snprintf(w->path, sizeof w->path, "/tmp/segue-world-%d-%d.db", (int)getpid(),
                 ++number);
    w->clock_ms = 1000;
    test_mem_init(&w->mem);
    if (w->place == WORLD_PAIR)
        start_pair(w);
}

static void remove_files(const world *w)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-owners"};
    char name[160];
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s%s", w->path, ends[i]);
        unlink(name);
    }
}

static void free_wire(wire *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->lines[i]);
    for (size_t i = 0; i < c->kept_count; i++)
        free(c->kept[i]);
    free(c->lines);
    free(c->kept);
    free(c->history);
    free(c);
}

static void end_child(wire *c, int how)
{
    if (c->child <= 0)
        return;
    kill(c->child, how);
    close(c->to);
    close(c->from);
    waitpid(c->child, NULL, 0);
    c->child = 0;
    c->closed = 1;
}

void world_end(world *w)
{
    if (w->place == WORLD_PAIR)
        stop_pair(w);
    for (wire *c = w->wires; c; c = c->next)
        end_child(c, SIGKILL);
    while (w->wires) {
        wire *c = w->wires;
        w->wires = c->next;
        free_wire(c);
    }
    segue_store_free(w->store);
    remove_files(w);
    if (w->place == WORLD_PAIR)
        assert_int_equal(w->mem.live, 0);
}

void world_restart(world *w)
{
    if (w->place == WORLD_PAIR) {
        stop_pair(w);
        if (w->between)
            w->between(w);
        w->dead = 0;
        start_pair(w);
        return;
    }
    for (wire *c = w->wires; c; c = c->next)
        end_child(c, SIGKILL);
}

/* ---- wires ---- */

static void received(wire *c, const char *bytes, size_t len)
{
    if (c->len + len + 1 > c->cap) {
        c->cap = (c->len + len + 1) * 2;
        c->history = realloc(c->history, c->cap);
    }
    memcpy(c->history + c->len, bytes, len);
    c->len += len;
    c->history[c->len] = 0;
    char *end;
    while ((end = memchr(c->history + c->read_at, '\n', c->len - c->read_at))) {
        size_t n = (size_t)(end - (c->history + c->read_at));
        c->lines = realloc(c->lines, (c->count + 1) * sizeof *c->lines);
        c->lines[c->count++] = strndup(c->history + c->read_at, n);
        c->read_at += n + 1;
    }
}

static void wire_start(void *self, segue_transport *transport)
{
    (void)self;
    (void)transport;
}

static size_t wire_take(void *self, const char *bytes, size_t len)
{
    wire *c = self;
    if (c->stalled)
        return 0;
    if (!c->w->dead)
        received(c, bytes, len);
    return len;
}

void wire_stall(wire *c, int stalled)
{
    c->stalled = stalled;
    if (!stalled)
        segue_transport_writable(c->transport);
}

static void wire_close(void *self)
{
    wire *c = self;
    c->closed = 1;
    segue_transport_closed(c->transport);
}

static void wire_gone(void *self)
{
    wire *c = self;
    c->detached = 1;
}

static void connect_pair(wire *c)
{
    segue_transport_vtable vtable;
    segue_struct_init(&vtable, sizeof vtable, SEGUE_STRUCT_TRANSPORT_VTABLE);
    vtable.start = wire_start;
    vtable.send = wire_take;
    vtable.close = wire_close;
    vtable.free = wire_gone;
    assert_int_equal(segue_transport_custom(c->w->runtime, &vtable, c, &c->transport),
                     SEGUE_OK);
    assert_int_equal(segue_server_attach(c->w->server, c->transport), SEGUE_OK);
    world_run(c->w);
}

static void connect_stdio(wire *c)
{
    int in[2], out[2];
    const char *program = getenv("SEGUE_FIXTURE_SERVER");
    if (!program)
        program = SEGUE_FIXTURE_SERVER;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    c->child = fork();
    if (c->child == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        if (c->w->fault)
            setenv("SEGUE_FAULT", c->w->fault, 1);
        execl(program, program, c->w->store_kind == WORLD_SQLITE ? c->w->path : NULL,
              NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    c->to = in[1];
    c->from = out[0];
    fcntl(c->from, F_SETFL, O_NONBLOCK);
}

wire *world_connect(world *w, const char *principal)
{
    wire *c = calloc(1, sizeof *c);
    c->w = w;
    c->principal = principal;
    c->next = w->wires;
    w->wires = c;
    if (w->place == WORLD_PAIR)
        connect_pair(c);
    else
        connect_stdio(c);
    return c;
}

void wire_cut(wire *c)
{
    if (c->w->place == WORLD_STDIO) {
        end_child(c, SIGKILL);
        return;
    }
    segue_transport_closed(c->transport);
    world_run(c->w);
    c->closed = 1;
}

int wire_is_closed(wire *c)
{
    return c->closed;
}

static void put(wire *c, const char *bytes, size_t len)
{
    if (c->w->place == WORLD_PAIR) {
        assert_int_equal(segue_transport_feed(c->transport, bytes, len), SEGUE_OK);
        if (c->w->drive != WORLD_WHOLE && world_chance(c->w, 8) == 0)
            segue_runtime_dispatch(c->w->runtime, 0, 0, NULL);
        return;
    }
    while (len) {
        ssize_t n = write(c->to, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* the server is gone: whoever waits for an answer says so */
        bytes += n;
        len -= (size_t)n;
    }
}

void wire_feed(wire *c, const char *bytes, size_t len)
{
    assert_int_equal(segue_transport_feed(c->transport, bytes, len), SEGUE_OK);
}

void wire_send(wire *c, const char *line)
{
    size_t len = strlen(line);
    char *text = malloc(len + 2);
    memcpy(text, line, len);
    text[len++] = '\n';
    for (size_t at = 0; at < len;) {
        size_t n = len;
        if (c->w->drive == WORLD_BYTES && len < 4096)
            n = 1;
        else if (c->w->drive == WORLD_RANDOM)
            n = 1 + world_chance(c->w, 64);
        if (n > len - at)
            n = len - at;
        put(c, text + at, n);
        at += n;
    }
    free(text);
    world_run(c->w);
}

char *wire_line(const char *id, const char *method, const char *params, const char *caps)
{
    size_t size = strlen(id) + strlen(method) + (params ? strlen(params) : 0) + 600;
    char *line = malloc(size + (caps ? strlen(caps) : 0));
    sprintf(line,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s%s\"_meta\":{"
            "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
            "\"io.modelcontextprotocol/clientCapabilities\":%s}}}",
            id, method, params ? params : "", params && *params ? "," : "",
            caps ? caps : "{}");
    return line;
}

void wire_ask(wire *c, const char *id, const char *method, const char *params,
              const char *caps)
{
    char *line = wire_line(id, method, params, caps);
    wire_send(c, line);
    free(line);
}

void wire_notify(wire *c, const char *method, const char *params)
{
    char line[2048];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{%s}}",
             method, params ? params : "");
    wire_send(c, line);
}

void wire_ask_plain(wire *c, const char *id, const char *method, const char *params)
{
    size_t size = strlen(method) + (params ? strlen(params) : 0) + 100;
    char *line = malloc(size);
    snprintf(line, size,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s}}", id,
             method, params ? params : "");
    wire_send(c, line);
    free(line);
}

/* ---- what the server says ---- */

/* STDIO: reads what is there, waiting up to timeout_ms for more; 0 at the end. */
static int read_child(wire *c, int timeout_ms)
{
    struct pollfd p = {.fd = c->from, .events = POLLIN};
    char bytes[65536];
    if (c->closed || poll(&p, 1, timeout_ms) <= 0)
        return 0;
    ssize_t n = read(c->from, bytes, sizeof bytes);
    if (n <= 0) {
        c->closed = 1;
        return 0;
    }
    received(c, bytes, (size_t)n);
    return 1;
}

static int64_t real_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Something may have come: PAIR runs the world, STDIO waits. 0 when nothing will. */
static int pump(wire *c, int64_t deadline)
{
    size_t before = c->len;
    if (c->w->place == WORLD_STDIO) {
        int64_t left = deadline - real_ms();
        return left > 0 && (read_child(c, (int)left) || c->len != before);
    }
    world_run(c->w);
    return c->len != before || (is_slow_store(c->w) && real_ms() < deadline);
}

static const char *keep(wire *c, char *text)
{
    c->kept = realloc(c->kept, (c->kept_count + 1) * sizeof *c->kept);
    c->kept[c->kept_count++] = text;
    return text;
}

static const char *take(wire *c, size_t i)
{
    char *text = c->lines[i];
    c->lines[i] = NULL;
    while (c->taken < c->count && !c->lines[c->taken])
        c->taken++;
    return keep(c, text);
}

const char *wire_next(wire *c)
{
    int64_t deadline = real_ms() + (c->w->place == WORLD_STDIO ? QUIET_MS : 50);
    while (c->taken == c->count)
        if (!pump(c, deadline))
            return NULL;
    return take(c, c->taken);
}

/* A value of the scenario's interest: whether a line is the one that is looked for. */
typedef int (*wanted_fn)(const char *line, const char *what);

static int is_response(const char *line, const char *id)
{
    return !strcmp(json_at(line, "id"), id) && !*json_at(line, "method");
}

static int is_notification(const char *line, const char *method)
{
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\"", method);
    return !strcmp(json_at(line, "method"), quoted) && !*json_at(line, "id");
}

static const char *wait_for(wire *c, wanted_fn wanted, const char *what)
{
    int64_t deadline = real_ms() + WAIT_MS;
    size_t at = c->taken;
    int quiet = 0;
    for (;;) {
        for (; at < c->count; at++)
            if (c->lines[at] && wanted(c->lines[at], what))
                return take(c, at);
        if (pump(c, deadline)) {
            quiet = 0;
        } else if (c->w->place == WORLD_STDIO || ++quiet > 3) {
            fail_msg("waited for %s, got nothing; history:\n%.2000s", what,
                     c->history ? c->history : "");
        }
    }
}

const char *wire_response(wire *c, const char *id)
{
    return wait_for(c, is_response, id);
}

const char *wire_notification(wire *c, const char *method)
{
    return wait_for(c, is_notification, method);
}

const char *wire_do(wire *c, const char *id, const char *method, const char *params,
                    const char *caps)
{
    wire_ask(c, id, method, params, caps);
    return wire_response(c, id);
}

const char *wire_do_plain(wire *c, const char *id, const char *method, const char *params)
{
    wire_ask_plain(c, id, method, params);
    return wire_response(c, id);
}

void wire_until_closed(wire *c)
{
    int64_t deadline = real_ms() + WAIT_MS;
    while (!c->closed && real_ms() < deadline)
        if (!pump(c, deadline) && c->w->place == WORLD_PAIR)
            break;
    assert_true(c->closed);
}

void wire_quiet(wire *c)
{
    if (c->w->place == WORLD_STDIO)
        return;
    world_run(c->w);
    if (c->taken != c->count)
        fail_msg("did not expect: %s", c->lines[c->taken]);
}

const char *wire_history(const wire *c)
{
    return c->history ? c->history : "";
}

/* ---- tasks ---- */

static char *unquote(const char *json)
{
    size_t n = strlen(json);
    return n >= 2 && json[0] == '"' ? strndup(json + 1, n - 2) : strdup(json);
}

const char *wire_make_task(wire *c, const char *id, const char *tool,
                           const char *arguments, const char *caps)
{
    char params[2048];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{%s}", tool,
             arguments ? arguments : "");
    const char *response = wire_do(c, id, "tools/call", params, caps ? caps : CAPS_TASKS);
    assert_at(response, "result.resultType", "\"task\"");
    return keep(c, unquote(json_at(response, "result.taskId")));
}

const char *wire_task(wire *c, const char *id, const char *method, const char *task_id,
                      const char *more)
{
    char params[2048];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"%s%s", task_id, more ? "," : "",
             more ? more : "");
    return wire_do(c, id, method, params, CAPS_TASKS);
}

const char *wire_get_until(wire *c, const char *task_id, const char *status,
                           const char *caps)
{
    char params[256], wanted[64], id[32];
    int64_t deadline = real_ms() + WAIT_MS;
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", task_id);
    snprintf(wanted, sizeof wanted, "|%s|", status);
    for (int i = 0; i < 2000 && real_ms() < deadline; i++) {
        snprintf(id, sizeof id, "\"until-%d\"", i);
        const char *got = wire_do(c, id, "tasks/get", params, caps ? caps : CAPS_TASKS);
        char now[32];
        const char *quoted = json_at(got, "result.status");
        snprintf(now, sizeof now, "|%.*s|", (int)strlen(quoted) - 2, quoted + 1);
        if (*quoted && strstr(wanted, now))
            return got;
        if (*json_at(got, "error"))
            fail_msg("tasks/get: %s", got);
        world_advance(c->w, 50);
        if (c->w->place == WORLD_STDIO)
            read_child(c, 10); /* time passes by itself there */
    }
    fail_msg("task never became %s", status);
    return NULL;
}

/* ---- JSON ---- */

static sgi_json walk(sgi_json value, const char *path)
{
    while (*path && value.n) {
        char name[128];
        size_t n = strcspn(path, ".");
        if (n >= sizeof name)
            return (sgi_json){0};
        memcpy(name, path, n);
        name[n] = 0;
        path += n + (path[n] == '.');
        if (sgi_json_kind_of(value) == SGI_JSON_ARRAY) {
            sgi_json item = {0};
            size_t at = 0;
            for (int left = atoi(name); left >= 0; left--)
                if (!sgi_json_next_item(value, &at, &item))
                    item = (sgi_json){0};
            value = item;
        } else {
            value = sgi_json_get(value, name);
        }
    }
    return value;
}

const char *json_at(const char *message, const char *path)
{
    static char *ring[16];
    static int turn;
    if (!message)
        fail_msg("there is no message to look for %s in", path);
    sgi_json value = walk(sgi_json_trim((sgi_str){message, strlen(message)}), path);
    turn = (turn + 1) % 16;
    free(ring[turn]);
    ring[turn] = value.n ? strndup(value.p, value.n) : strdup("");
    return ring[turn];
}

void assert_at_(const char *message, const char *path, const char *expected,
                const char *file, int line)
{
    const char *found = json_at(message, path);
    if (strcmp(found, expected) == 0)
        return;
    print_error("%s is %s, expected %s, in %s\n", path, found, expected, message);
    _fail(file, line);
}

int json_mentions(const char *message, const char *name)
{
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    return strstr(message, quoted) != NULL;
}

/* ---- golden files ---- */

/* Values that differ from run to run become their name in angle brackets. */
static char *mask(const char *message)
{
    static const struct {
        const char *key, *name;
        char end;
    } masks[] = {{"\"taskId\":\"", "taskId", '"'},
                 {"\"createdAt\":\"", "createdAt", '"'},
                 {"\"lastUpdatedAt\":\"", "lastUpdatedAt", '"'},
                 {"\"taskIds\":[\"", "taskIds", ']'}};
    char *text = malloc(strlen(message) * 2 + 64);
    char *out = text;
    for (const char *in = message; *in;) {
        size_t i = 0, n = 0;
        for (; i < sizeof masks / sizeof *masks; i++)
            if (!strncmp(in, masks[i].key, n = strlen(masks[i].key)))
                break;
        if (i == sizeof masks / sizeof *masks) {
            *out++ = *in++;
            continue;
        }
        out += sprintf(out, "%s<%s>%s", masks[i].key, masks[i].name,
                       masks[i].end == '"' ? "" : "\"");
        in = strchr(in + n, masks[i].end);
    }
    *out = 0;
    return text;
}

void assert_golden(const char *message, const char *name)
{
    char path[256], stored[65536];
    char *masked = mask(message);
    snprintf(path, sizeof path, "%s/%s.json", SEGUE_GOLDEN_DIR, name);
    const char *mode = getenv("SEGUE_GOLDEN");
    if (mode && !strcmp(mode, "write")) {
        FILE *f = fopen(path, "w");
        fprintf(f, "%s\n", masked);
        fclose(f);
    }
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("no golden file %s", path);
    size_t n = fread(stored, 1, sizeof stored - 1, f);
    fclose(f);
    while (n && stored[n - 1] == '\n')
        n--;
    stored[n] = 0;
    if (strcmp(stored, masked) != 0)
        fail_msg("differs from %s:\n  %s\n  %s", path, stored, masked);
    free(masked);
}

/* ---- the matrix ---- */

typedef struct run {
    const scenario *scenario;
    world_place place;
    world_store store;
    world_drive drive;
    void (*prepare)(world *w);
    char name[200];
} run;

static void run_one(void **state)
{
    const run *r = *state;
    world w = {.place = r->place, .store_kind = r->store, .drive = r->drive};
    w.tune = r->scenario->tune;
    if (r->prepare)
        r->prepare(&w);
    world_begin(&w);
    r->scenario->run(&w);
    world_end(&w);
}

int scenarios_run(const scenario *scenarios, size_t count)
{
    return scenarios_run_prepared(scenarios, count, NULL);
}

int scenarios_run_prepared(const scenario *scenarios, size_t count,
                           void (*prepare)(world *w))
{
    static const char *const places[] = {"pair", "stdio"};
    static const char *const stores[] = {"memory", "sqlite"};
    static const char *const drives[] = {"whole", "bytes", "random"};
    run *runs = calloc(count * 12, sizeof *runs);
    struct CMUnitTest *tests = calloc(count * 12, sizeof *tests);
    size_t n = 0;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < count; i++)
        for (int variant = 0; variant < 12; variant++) {
            const scenario *s = &scenarios[i];
            run *r = &runs[n];
            *r = (run){.scenario = s, .prepare = prepare};
            r->place = (world_place)(variant / 6);
            r->store = (world_store)(variant / 3 % 2);
            r->drive = (world_drive)(variant % 3);
            if ((s->flags & ONLY_PAIR && r->place != WORLD_PAIR) ||
                (s->flags & ONLY_STDIO && r->place != WORLD_STDIO) ||
                (s->flags & ONLY_SQLITE && r->store != WORLD_SQLITE) ||
                (r->drive != WORLD_WHOLE &&
                 (s->flags & ONE_DRIVE || r->place == WORLD_STDIO)))
                continue;
            const char *only = getenv("SEGUE_SCENARIO");
            if (only && !strstr(s->name, only))
                continue;
            snprintf(r->name, sizeof r->name, "%s [%s %s %s]", s->name, places[r->place],
                     stores[r->store], drives[r->drive]);
            tests[n++] = (struct CMUnitTest){r->name, run_one, NULL, NULL, r};
        }
    int failed = _cmocka_run_group_tests("scenarios", tests, n, NULL, NULL);
    free(tests);
    free(runs);
    return failed;
}
