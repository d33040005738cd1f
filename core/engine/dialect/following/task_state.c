/* Reads a server's description of a task: state, message and poll interval. Also has
 * functions for all messages about a task. */
#include "engine/dialect/following/follow.h"

#include "base/thresholds.h"
#define POLL_MIN_MS SGI_THRESHOLD(poll_least_ms)
#define POLL_MAX_MS SGI_THRESHOLD(poll_most_ms)

/* Writes the status word, a NUL and the status text into a record for the application. */
static void write_status(sgi_buf *text, sgi_json status, sgi_json message, int32_t state)
{
    static const char *const words[] = {"working",   "working", "input_required",
                                        "completed", "failed",  "cancelled"};
    sgi_str word;
    if (!sgi_json_plain_string(status, &word))
        word = sgi_str_of(words[state]);
    sgi_buf_add_str(text, word);
    sgi_buf_add_char(text, 0);
    if (message.n)
        sgi_json_decode_without_nul(message, text);
}

/* Stores the status word and the status text of the description. When the description has
 * no word or no text, the stored one stays. */
void sgi_task_note_status(segue_request *request, sgi_json object)
{
    sgi_json status = sgi_json_get(object, "status");
    sgi_json message = sgi_json_get(object, "statusMessage");
    int32_t state = sgi_task_state_from_status(status);
    sgi_buf text;
    if (sgi_json_kind_of(message) != SGI_JSON_STRING)
        message = (sgi_json){0};
    sgi_inbox_record_head head = {.kind = SGI_RECORD_STATUS, .number = message.n > 0};
    if (state == SEGUE_TASK_UNKNOWN)
        state = request->follow->state;
    if (sgi_task_state_is_terminal(request->follow->state) &&
        state != request->follow->state)
        return; /* a terminal state never changes (R-2557-47) */
    bool changed = state != request->follow->state;
    request->follow->state = state;
    if (request->task)
        sgi_task_handle_set_state(request->task, state);
    if ((!changed && !message.n) || !request->events.on_status ||
        sgi_inbox_is_full(request))
        return;
    sgi_buf_init(&text, sgi_engine_mem(request->engine));
    write_status(&text, status, message, state);
    uint64_t told = sgi_siphash(request->session->in_flight.seed, text.p, text.len);
    if (!text.failed && (changed || told != request->follow->status_reported)) {
        sgi_inbox_add_record(request, &head, sgi_buf_str(&text));
        request->follow->status_reported = told;
    }
    sgi_buf_free(&text);
}

/* Reads the task's time to live (null = unlimited). The unit is seconds in DRAFT-2026-v1
 * and milliseconds in other revisions. */
static void note_ttl(segue_request *request, sgi_json task)
{
    bool in_seconds = request->session->version == SGI_VERSION_DRAFT_2026_V1;
    const struct {
        const char *name;
        int64_t unit;
    } known[] = {{"ttlMs", 1}, {"ttlSeconds", 1000}, {"ttl", in_seconds ? 1000 : 1}};
    for (size_t i = 0; i < 3; i++) {
        sgi_json value = sgi_json_get(task, known[i].name);
        int64_t ttl;
        if (value.n && sgi_json_kind_of(value) == SGI_JSON_NULL)
            request->follow->ttl_ms = -1;
        else if (sgi_json_read_int(value, &ttl) && ttl >= 0)
            request->follow->ttl_ms = sgi_time_mul(ttl, known[i].unit);
        else
            continue;
        return;
    }
}

/* True when the task's time to live is over. The time is counted from the moment at which
 * the client learnt of the task. This moment is later than the creation of the task, so
 * the client never gives up too early. */
bool sgi_task_is_overdue(const segue_request *request)
{
    int64_t known = sgi_now(&request->engine->env) - request->follow->known_ms;
    return request->follow->ttl_ms > 0 && known >= request->follow->ttl_ms;
}

/* Reads the time to live and the poll interval. The names of these members differ between
 * revisions (R-2557-2). */
void sgi_task_note_poll_interval(segue_request *request, sgi_json task)
{
    note_ttl(request, task);
    if (!request->follow->known_ms)
        request->follow->known_ms = sgi_now(&request->engine->env);
    static const char *const names[] = {"pollIntervalMs", "pollIntervalMilliseconds",
                                        "pollInterval"};
    int64_t ms;
    for (size_t i = 0; i < 3; i++)
        if (sgi_json_read_int(sgi_json_get(task, names[i]), &ms) && ms >= 0) {
            request->follow->poll_ms = ms;
            return;
        }
}

int64_t sgi_task_poll_interval(const segue_request *request)
{
    int64_t ms = request->follow->poll_ms;
    return ms < POLL_MIN_MS ? POLL_MIN_MS : ms > POLL_MAX_MS ? POLL_MAX_MS : ms;
}

void sgi_task_poll_later(segue_request *request)
{
    if (request->cancel_due)
        /* the answer to tasks/cancel will end the request, so no tasks/get is
         * scheduled */
        return;
    sgi_tries_set_timer(&request->tries, sgi_task_poll_interval(request));
}

sgi_emitter *sgi_task_begin_request(segue_request *request, sgi_sending *sending,
                                    const char *method,
                                    void (*done)(sgi_emitter *, const sgi_outcome *))
{
    sgi_emitter *emitter =
        sgi_emitter_begin(request->session, sending, sgi_str_of(method));
    if (!emitter)
        return NULL;
    emitter->request = request;
    emitter->done = done;
    emitter->repeats = true;
    sgi_jw_member_string(&sending->w, "taskId", sgi_str_of(request->task_id));
    if (request->follower->write_about)
        request->follower->write_about(request, &sending->w);
    return emitter;
}

/* ---- lastUpdatedAt ---- */

static bool read_digits(sgi_str *text, size_t n, int64_t *out)
{
    int64_t value = 0;
    if (text->n < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text->p[i] < '0' || text->p[i] > '9')
            return false;
        value = value * 10 + (text->p[i] - '0');
    }
    *out = value;
    text->p += n;
    text->n -= n;
    return true;
}

static bool read_char(sgi_str *text, char c)
{
    if (!text->n || (text->p[0] | ('a' - 'A')) != (c | ('a' - 'A')))
        return false;
    text->p++;
    text->n--;
    return true;
}

/* Returns the number of days from 1970-01-01 to a day of the Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    /* in this calculation a year begins on 1 March */
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719468;
}

/* Reads the part of a time after the seconds: a fraction, and the offset from UTC.
 * Returns false when this part is invalid. */
static bool read_rest(sgi_str *text, int64_t *ms)
{
    int64_t digit, hours, minutes;
    int64_t unit = 100;
    *ms = 0;
    if (read_char(text, '.')) {
        if (!read_digits(text, 1, &digit))
            return false;
        do {
            *ms += digit * unit;
            unit /= 10;
        } while (read_digits(text, 1, &digit));
    }
    if (read_char(text, 'Z'))
        return text->n == 0;
    int64_t sign = text->n && text->p[0] == '-' ? 60000 : -60000;
    if (!text->n || (text->p[0] != '+' && text->p[0] != '-'))
        return false;
    text->p++;
    text->n--;
    if (!read_digits(text, 2, &hours) || !read_char(text, ':') ||
        !read_digits(text, 2, &minutes))
        return false;
    *ms += sign * (hours * 60 + minutes);
    return text->n == 0;
}

/* Converts an RFC 3339 time to ms since 1970. "Z" and "+00:00" mean the same (R-0-6).
 * Returns 0 for any other text. */
static int64_t instant_of(sgi_json value)
{
    int64_t year, month, day, hour, minute, second, rest;
    sgi_str text;
    if (!sgi_json_plain_string(value, &text) || !read_digits(&text, 4, &year) ||
        !read_char(&text, '-') || !read_digits(&text, 2, &month) ||
        !read_char(&text, '-') || !read_digits(&text, 2, &day) ||
        !read_char(&text, 'T') || !read_digits(&text, 2, &hour) ||
        !read_char(&text, ':') || !read_digits(&text, 2, &minute) ||
        !read_char(&text, ':') || !read_digits(&text, 2, &second) ||
        !read_rest(&text, &rest) || month < 1 || month > 12)
        return 0;
    int64_t seconds =
        ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    return seconds * 1000 + rest;
}

bool sgi_task_description_is_stale(segue_request *request, sgi_json task)
{
    int64_t updated = instant_of(sgi_json_get(task, "lastUpdatedAt"));
    int32_t state = sgi_task_state_from_status(sgi_json_get(task, "status"));
    if (sgi_task_state_is_terminal(request->follow->state))
        return state != request->follow->state;
    if (sgi_task_state_is_terminal(state))
        return false;
    if (updated && updated < request->follow->updated_ms)
        return true;
    if (updated)
        request->follow->updated_ms = updated;
    return false;
}

/* True when the message names a task that is not the task of the request. A description
 * without an id counts as the task of the request, because some servers leave the id out
 * of their answers. */
bool sgi_task_description_is_of_another(const segue_request *request, sgi_json task)
{
    sgi_json id = sgi_json_get(task, "taskId");
    return id.n && !sgi_json_string_is(id, sgi_str_of(request->task_id));
}

const char *sgi_task_unknown_error_text(const segue_request *request)
{
    return request->follow->credentials == request->session->conn->credentials
               ? "the server does not know the task"
               : "the server does not know the task. The credentials have changed since "
                 "the task was started: the task may belong to another user";
}
