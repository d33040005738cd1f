/* A task is made in one session. On the way its reader may resume it by token in another
 * session of the same revision, as a client would that was cut off. In such a session
 * another client may also watch the task from its first segment. When all views have
 * ended and were compared, the digest of the segments is printed, so that the task can be
 * read in other ways and compared. */
#include "reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader reader;

typedef struct path {
    reader *owner;
    view view;
    segue_request *request;
    bool open;   /* on_complete has not run yet */
    bool moving; /* the request was freed, and is resumed when that is done */
    char *token; /* the token to resume with */
    size_t session;
} path;

struct reader {
    crowd *crowd;
    record record;
    char *task_id;
    uint64_t move_at;  /* the maker moves to another session behind this segment; 0 =
                        * never */
    uint64_t watch_at; /* another client begins to watch at this segment; 0 = none does */
    path maker;
    path watcher;
};

static void begin(reader *r);

/* splitmix64 */
static uint64_t draw(crowd *c, uint64_t below)
{
    uint64_t x = c->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

static void complain(const reader *r, const char *what, const char *why)
{
    fprintf(stderr, "reader: task %s: %s: %s\n", r->task_id ? r->task_id : "(none)", what,
            why);
}

/* ---- the end of a task ---- */

static void tell_digest(const reader *r)
{
    char hex[65];
    record_digest(&r->record, hex);
    printf("done %s %s %zu %s\n",
           r->maker.session < r->crowd->modern_count ? "modern" : "legacy", r->task_id,
           r->record.count, hex);
    fflush(stdout);
}

static void forget(reader *r)
{
    record_free(&r->record);
    free(r->task_id);
    r->task_id = NULL;
    segue_request_free(r->maker.request);
    segue_request_free(r->watcher.request);
    r->maker = r->watcher = (path){.owner = r};
}

static void end_if_over(reader *r)
{
    crowd *c = r->crowd;
    if (r->maker.open || r->watcher.open)
        return;
    c->tasks++;
    if (r->task_id)
        tell_digest(r);
    forget(r);
    if (!c->stopping) {
        begin(r);
        return;
    }
    c->running--;
    free(r);
}

static void fail(path *p, const char *what, const char *why)
{
    complain(p->owner, what, why);
    p->open = false;
    if (!p->owner->task_id) { /* no task id was given and no segment seen */
        printf("refused\n");
        fflush(stdout);
        return;
    }
    p->owner->crowd->failed++;
    record_give_up(&p->owner->record, &p->view);
}

/* ---- a view ---- */

static void set_events(path *p, segue_request_events *events);

/* Returns another session of the same revision. */
static size_t other_session(crowd *c, size_t from)
{
    bool modern = from < c->modern_count;
    size_t first = modern ? 0 : c->modern_count;
    size_t count = modern ? c->modern_count : c->session_count - c->modern_count;
    return first + (size_t)draw(c, count);
}

/* Resumes with the token. More segments may have come after it was taken, which it does
 * not cover. */
static void resume(path *p)
{
    crowd *c = p->owner->crowd;
    segue_request_events events;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    set_events(p, &events);
    options.seen = (int64_t)p->view.last;
    segue_request_free(p->request);
    p->request = NULL;
    p->moving = false;
    p->session = other_session(c, p->session);
    segue_status status = segue_request_resume(c->sessions[p->session], p->token,
                                               &options, &events, &p->request, NULL);
    free(p->token);
    p->token = NULL;
    if (status != SEGUE_OK)
        fail(p, "cannot resume", segue_status_name(status));
    else
        c->resumed++;
}

static void move(path *p)
{
    size_t len = 0;
    segue_status status = segue_request_token(p->request, NULL, &len);
    if (status == SEGUE_E_NOT_RESUMABLE)
        return;
    p->token = malloc(++len);
    if (!p->token || segue_request_token(p->request, p->token, &len) != SEGUE_OK ||
        segue_request_detach(p->request) != SEGUE_OK) {
        free(p->token);
        p->token = NULL;
        return;
    }
    p->moving = true;
}

static void watch(reader *r)
{
    crowd *c = r->crowd;
    path *p = &r->watcher;
    segue_task *task;
    segue_request_events events;
    p->session = other_session(c, r->maker.session);
    set_events(p, &events);
    if (segue_task_attach(c->sessions[p->session], r->task_id, &task, NULL) != SEGUE_OK)
        return;
    p->open = segue_task_watch(task, NULL, &events, &p->request, NULL) == SEGUE_OK;
    segue_task_free(task);
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    path *p = user;
    reader *r = p->owner;
    size_t len = 0;
    const char *text = segue_segment_text(segment, &len);
    uint64_t number = segue_segment_read(segment)->number;
    (void)request;
    if (!record_see(&r->record, &p->view, number, text ? text : "", len))
        complain(r, "a segment", "out of memory");
    if (p != &r->maker)
        return;
    if (r->watch_at && number >= r->watch_at && r->task_id) {
        r->watch_at = 0;
        watch(r);
    }
    if (r->move_at && number >= r->move_at && r->task_id) {
        r->move_at = 0;
        move(p);
    }
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    path *p = user;
    (void)request;
    if (!p->owner->task_id)
        p->owner->task_id = strdup(task_id);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    path *p = user;
    (void)request;
    if (p->moving && status == SEGUE_E_CLOSED) {
        resume(p);
    } else if (status != SEGUE_OK) {
        fail(p, segue_status_name(status), segue_error_read(error)->message);
    } else {
        record_judge(&p->owner->record, &p->view, json, len);
        p->open = false;
    }
    free(p->open && p->moving ? NULL : p->token);
    p->token = NULL;
    if (!p->open)
        end_if_over(p->owner);
}

static void set_events(path *p, segue_request_events *events)
{
    *events = SEGUE_REQUEST_EVENTS_INIT;
    events->user = p;
    events->on_segment = on_segment;
    events->on_task = on_task;
    events->on_complete = on_complete;
}

/* ---- the start ---- */

static void begin(reader *r)
{
    crowd *c = r->crowd;
    segue_request_events events;
    char params[256];
    int len = snprintf(params, sizeof params,
                       "{\"name\":\"weave\",\"arguments\":{\"count\":%" PRId64
                       ",\"size\":%" PRId64 ",\"paceUs\":%" PRId64 "}}",
                       c->count, c->size, c->pace_us);
    uint64_t places = (uint64_t)c->count;
    r->move_at = draw(c, 2) ? 1 + draw(c, places) : 0;
    r->watch_at = draw(c, 2) ? 1 + draw(c, places) : 0;
    r->maker.session = (size_t)draw(c, c->session_count);
    set_events(&r->maker, &events);
    r->maker.open = record_begin(&r->record, (size_t)c->count, &c->found) &&
                    segue_request_start(c->sessions[r->maker.session], "tools/call",
                                        params, (size_t)len, NULL, &events,
                                        &r->maker.request, NULL) == SEGUE_OK;
    if (!r->maker.open) {
        complain(r, "a call", "cannot be made");
        c->failed++;
        c->stopping = true;
        end_if_over(r);
    }
}

bool reader_start(crowd *c)
{
    reader *r = calloc(1, sizeof *r);
    if (!r)
        return false;
    r->crowd = c;
    r->maker.owner = r->watcher.owner = r;
    c->running++;
    begin(r);
    return true;
}
