/* The client: finds or starts the server, calls its tool, writes the segments to the
 * output file, and can be killed at any instant without losing or repeating a segment.
 *
 * The received data and the point to go on from must change together. So there is one
 * truth, the state file. It holds how many segments and bytes of the output are valid,
 * and the resume token that covers exactly these. It is replaced by rename, which is
 * atomic:
 *
 *     append to output  -->  token, write state.new  -->  rename to state
 *          killed here: output too long,   killed here: the same    killed here: all done
 *          cut to the old length at start
 *
 * The first state is written before anything is sent. Its token holds the call itself
 * with an idempotency key: sent again, it finds the task that the first attempt made. The
 * last state needs no token; it says "end".
 *
 * The files survive the death of a process, not of the machine: that would need an
 * fdatasync of either file before the rename. */
#include "reader.h"

#include <segue/segue.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct reader {
    const reader_paths *paths;
    segue_runtime *runtime;
    segue_session *session;
    segue_request *request;
    int output;
    uint64_t segments; /* received; the state file has the same number after
                        * save_progress */
    uint64_t saved;
    int64_t bytes; /* bytes of the output that the state file covers */
    char *token;
    char *batch; /* received and not yet in the output file */
    size_t batch_len;
    size_t batch_cap;
    bool over;
    bool failed;
} reader;

static void fail(reader *r, const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (!r->failed)
        dprintf(STDERR_FILENO, "reader failed %s\n", why);
    r->failed = r->over = true;
}

/* ---- state ---- */

static bool load_state(reader *r)
{
    size_t cap = 0;
    FILE *file = fopen(r->paths->state, "r");
    if (!file) {
        if (errno != ENOENT)
            fail(r, "%s: %s", r->paths->state, strerror(errno));
        return errno == ENOENT;
    }
    bool ok = fscanf(file, "%" SCNu64 " %" SCNd64 " ", &r->segments, &r->bytes) == 2 &&
              getline(&r->token, &cap, file) > 0;
    fclose(file);
    if (!ok)
        fail(r, "%s is damaged", r->paths->state);
    r->saved = r->segments;
    return ok;
}

static void save_state(reader *r, const char *token)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.new", r->paths->state);
    FILE *file = fopen(path, "w");
    bool ok = file && fprintf(file, "%" PRIu64 " %" PRId64 " %s", r->segments, r->bytes,
                              token) > 0;
    if (file && fclose(file))
        ok = false;
    if (!ok || rename(path, r->paths->state))
        fail(r, "%s: %s", path, strerror(errno));
    r->saved = r->segments;
}

/* Returns the present token of the request; NULL after a failure. */
static char *get_token(reader *r)
{
    size_t len = 0;
    segue_status status = segue_request_token(r->request, NULL, &len);
    char *token = status == SEGUE_OK ? malloc(++len) : NULL;
    if (token)
        status = segue_request_token(r->request, token, &len);
    if (token && status == SEGUE_OK)
        return token;
    free(token);
    fail(r, "no token: %s", segue_status_name(token ? status : SEGUE_E_NOMEM));
    return NULL;
}

/* ---- output ---- */

static void write_batch(reader *r)
{
    for (size_t at = 0; at < r->batch_len;) {
        ssize_t got = write(r->output, r->batch + at, r->batch_len - at);
        if (got < 0 && errno != EINTR) {
            fail(r, "%s: %s", r->paths->output, strerror(errno));
            return;
        }
        at += got > 0 ? (size_t)got : 0;
    }
    r->bytes += (int64_t)r->batch_len;
    r->batch_len = 0;
}

/* Runs between callbacks, so that the token covers the batch and nothing else. */
static void save_progress(reader *r)
{
    bool ended = r->over;
    if (r->failed || (r->segments == r->saved && !ended))
        return;
    write_batch(r);
    char *token = ended || r->failed ? NULL : get_token(r);
    if (!r->failed)
        save_state(r, ended ? "end" : token);
    free(token);
    if (!r->failed)
        dprintf(STDERR_FILENO, "reader at %" PRIu64 "\n", r->segments);
}

static bool add_to_batch(reader *r, const char *text, size_t len)
{
    if (r->batch_cap - r->batch_len < len) {
        size_t cap = (r->batch_len + len) * 2;
        char *more = realloc(r->batch, cap);
        if (!more)
            return false;
        r->batch = more;
        r->batch_cap = cap;
    }
    memcpy(r->batch + r->batch_len, text, len);
    r->batch_len += len;
    return true;
}

/* Cuts off the part of the output that the state file does not cover. */
static bool open_output(reader *r)
{
    r->output = open(r->paths->output, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (r->output >= 0 && ftruncate(r->output, r->bytes) == 0 &&
        lseek(r->output, r->bytes, SEEK_SET) == r->bytes)
        return true;
    fail(r, "%s: %s", r->paths->output, strerror(errno));
    return false;
}

/* ---- the request ---- */

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    reader *r = user;
    size_t len = 0;
    const char *text = segue_segment_text(segment, &len);
    uint64_t number = segue_segment_read(segment)->number;
    (void)request;
    if (number != r->segments + 1)
        fail(r, "segment %" PRIu64 " after %" PRIu64, number, r->segments);
    else if (!text)
        fail(r, "segment %" PRIu64 " is not a text", number);
    else if (!add_to_batch(r, text, len))
        fail(r, "out of memory");
    else
        r->segments++;
}

/* The result brings no content, because the segments were not collected: it only says
 * whether the tool failed. */
static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    reader *r = user;
    (void)request;
    (void)len;
    if (status != SEGUE_OK)
        fail(r, "%s: %s", segue_status_name(status), segue_error_read(error)->message);
    else if (strstr(json, "\"isError\":true"))
        fail(r, "the tool refused: %s", json);
    r->over = true;
}

static segue_status ask(reader *r, int duration_ms, const segue_request_options *options,
                        const segue_request_events *events)
{
    char path[2 * 4096], params[sizeof path + 128];
    size_t used = 0;
    for (const char *at = r->paths->text; *at && used < sizeof path - 2; at++) {
        if (*at == '"' || *at == '\\')
            path[used++] = '\\';
        path[used++] = *at;
    }
    path[used] = 0;
    int len = snprintf(params, sizeof params,
                       "{\"name\":\"read_text\",\"arguments\":{\"path\":\"%s\","
                       "\"durationMs\":%d}}",
                       path, duration_ms);
    segue_status status =
        segue_request_start(r->session, "tools/call", params, (size_t)len, options,
                            events, &r->request, NULL);
    char *token = status == SEGUE_OK ? get_token(r) : NULL;
    if (token)
        /* nothing has been sent yet, because that takes a dispatch */
        save_state(r, token);
    free(token);
    return status;
}

static void start(reader *r, int duration_ms)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    options.discard = 1;
    events.user = r;
    events.on_segment = on_segment;
    events.on_complete = on_complete;
    segue_status status = r->token ? segue_request_resume(r->session, r->token, &options,
                                                          &events, &r->request, NULL)
                                   : ask(r, duration_ms, &options, &events);
    if (status != SEGUE_OK)
        fail(r, "cannot ask: %s", segue_status_name(status));
}

static segue_status spawn_server(reader *r, segue_transport **transport)
{
    const char *argv[] = {r->paths->where, r->paths->store, NULL};
    segue_spawn_options options = SEGUE_SPAWN_OPTIONS_INIT;
    options.argv = argv;
    options.restart = 1; /* the session starts the server again after every end */
    return segue_transport_spawn(r->runtime, &options, transport, NULL);
}

static segue_status find_server(reader *r, segue_transport **transport)
{
    segue_http_options options = SEGUE_HTTP_OPTIONS_INIT;
    options.proxy = ""; /* the environment's proxy is not for this machine */
    return segue_transport_http(r->runtime, r->paths->where, &options, transport, NULL);
}

/* Returns SEGUE_DEMO_ERA, which demo.c has checked. */
static int32_t demo_era(void)
{
    const char *era = getenv("SEGUE_DEMO_ERA");
    if (!era || !*era)
        return SEGUE_ERA_AUTO;
    return strcmp(era, "legacy") == 0 ? SEGUE_ERA_LEGACY : SEGUE_ERA_MODERN;
}

static segue_status open_session(reader *r)
{
    segue_transport *transport;
    segue_status status = segue_runtime_new(NULL, &r->runtime, NULL);
    if (status == SEGUE_OK)
        status = strncmp(r->paths->where, "http://", 7) == 0
                     ? find_server(r, &transport)
                     : spawn_server(r, &transport);
    if (status != SEGUE_OK)
        return status;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = demo_era();
    status = segue_session_open(r->runtime, transport, &options, NULL, &r->session, NULL);
    if (status != SEGUE_OK)
        segue_transport_free(transport);
    return status;
}

static void read_all(reader *r, int duration_ms)
{
    segue_status status = open_session(r);
    if (status != SEGUE_OK) {
        fail(r, "cannot begin: %s", segue_status_name(status));
        return;
    }
    start(r, duration_ms);
    while (!r->over && status == SEGUE_OK) {
        status = segue_runtime_dispatch(r->runtime, -1, 0, NULL);
        save_progress(r);
    }
    if (status != SEGUE_OK)
        fail(r, "the runtime ended: %s", segue_status_name(status));
}

int reader_run(const reader_paths *paths, int duration_ms)
{
    reader r = {.paths = paths, .output = -1};
    if (load_state(&r) && open_output(&r)) {
        dprintf(STDERR_FILENO, "reader start %" PRIu64 "\n", r.segments);
        if (!r.token || strcmp(r.token, "end") != 0)
            read_all(&r, duration_ms);
    }
    segue_request_free(r.request);
    segue_session_close(r.session);
    segue_session_free(r.session);
    segue_runtime_free(r.runtime);
    if (r.output >= 0)
        close(r.output);
    free(r.batch);
    free(r.token);
    if (!r.failed)
        dprintf(STDERR_FILENO, "reader done\n");
    return r.failed ? 1 : 0;
}
