#include "engine/engine.h"

#include "engine/event.h"

#include <stdarg.h>
#include <stdio.h>

void sgi_engine_init(sgi_engine *engine, const sgi_env *env,
                     const sgi_host_functions *host, sgi_digest_fn digest,
                     const sgi_aead *aead)
{
    *engine = (sgi_engine){.env = *env, .host = *host, .digest = digest, .aead = aead};
    sgi_timers_init(&engine->timers, env->mem);
    sgi_buf_init(&engine->scratch, env->mem);
    sgi_buf_init(&engine->fold_room, env->mem);
    TAILQ_INIT(&engine->ready);
    TAILQ_INIT(&engine->flows);
    for (size_t i = 0; i < SGI_SHAPE_MEMORIES; i++)
        sgi_json_shapes_init(&engine->shapes[i]);
}

void sgi_engine_set_limits(sgi_engine *engine, size_t max_message, int32_t max_depth,
                           size_t max_queue)
{
    engine->max_message = max_message;
    engine->max_queue = max_queue;
    sgi_json_reader_init(&engine->reader, &engine->env, max_message, max_depth);
}

void sgi_engine_free(sgi_engine *engine)
{
    sgi_timers_free(&engine->timers);
    sgi_json_reader_free(&engine->reader);
    sgi_buf_free(&engine->scratch);
    sgi_buf_free(&engine->fold_room);
}

/* sgi_engine_env casts a pointer to the engine to a pointer to sgi_env, so `env` must be
 * the first member. */
_Static_assert(offsetof(sgi_engine, env) == 0, "an engine begins with its env");

bool sgi_engine_digest(const sgi_engine *engine, uint8_t out[SGI_DIGEST_SIZE],
                       const sgi_str *parts, size_t count)
{
    return engine->digest(engine->hasher, out, parts, count);
}

sgi_json_reader *sgi_engine_json_reader(sgi_engine *engine)
{
    return &engine->reader;
}

sgi_json_shapes *sgi_engine_shapes_of(sgi_engine *engine, const void *whose)
{
    if (!whose)
        return NULL;
    uint64_t mixed = (uint64_t)(uintptr_t)whose * UINT64_C(0x9e3779b97f4a7c15);
    return &engine->shapes[(mixed >> 32) % SGI_SHAPE_MEMORIES];
}

static void report_limit(sgi_engine *engine, sgi_limit limit)
{
    if (!sgi_event_is_wanted(engine, SGI_EVENT_limit_reached))
        return;
    segue_event event = sgi_event_new(engine, SGI_EVENT_limit_reached);
    event.limit = sgi_limit_name(limit.id);
    sgi_event_report(engine, SGI_EVENT_limit_reached, &event);
}

sgi_limit_text sgi_engine_describe_limit(sgi_engine *engine, const char *what,
                                         sgi_limit limit, const char *reason,
                                         const char *advice)
{
    engine->limit_hits[limit.id]++;
    report_limit(engine, limit);
    return sgi_limit_describe(engine->is_camel, what, limit, reason, advice);
}

size_t sgi_engine_max_message(const sgi_engine *engine)
{
    return engine->max_message;
}

size_t sgi_engine_max_queue(const sgi_engine *engine)
{
    return engine->max_queue;
}

/* ---- calling user code ---- */

void sgi_user_code_begin(sgi_engine *engine)
{
    engine->host.unlock(engine->host.user);
}

void sgi_user_code_end(sgi_engine *engine)
{
    engine->host.lock(engine->host.user);
}

int32_t sgi_user_data_free(sgi_engine *engine, segue_free_fn free_user, void *user)
{
    if (!free_user)
        return 0;
    sgi_user_code_begin(engine);
    free_user(user);
    sgi_user_code_end(engine);
    return 1;
}

void sgi_engine_ref(sgi_engine *engine)
{
    engine->host.retain(engine->host.user);
}

void sgi_engine_unref(sgi_engine *engine)
{
    engine->host.release(engine->host.user);
}

void sgi_ready_queue_add(sgi_engine *engine, sgi_ready_object *ready)
{
    if (ready->queued)
        return;
    ready->queued = true;
    bool first = TAILQ_EMPTY(&engine->ready);
    TAILQ_INSERT_TAIL(&engine->ready, ready, link);
    if (first)
        engine->host.wake(engine->host.user);
}

void sgi_ready_queue_remove(sgi_engine *engine, sgi_ready_object *ready)
{
    if (!ready->queued)
        return;
    ready->queued = false;
    TAILQ_REMOVE(&engine->ready, ready, link);
}

int32_t sgi_engine_run_callbacks(sgi_engine *engine, int32_t budget)
{
    int32_t ran = 0;
    while (ran < budget && !TAILQ_EMPTY(&engine->ready)) {
        sgi_ready_object *next = TAILQ_FIRST(&engine->ready);
        sgi_ready_queue_remove(engine, next);
        ran += next->run(next, budget - ran);
    }
    return ran;
}

void sgi_engine_set_timer(sgi_engine *engine, sgi_timer *timer, int64_t delay_ms,
                          sgi_timer_fn fn)
{
    int64_t now = sgi_now(&engine->env);
    int64_t at = sgi_time_add(now, delay_ms);
    int64_t before = sgi_timers_next_due_ms(&engine->timers);
    sgi_timer_must_set(&engine->timers, timer, at, fn);
    if (at < before)
        engine->host.wake(engine->host.user);
}

void sgi_engine_clear_timer(sgi_engine *engine, sgi_timer *timer)
{
    sgi_timer_clear(&engine->timers, timer);
}

/* Replaces control characters in a text that may quote a peer, so that the quoted text
 * cannot begin a new line or send commands to a terminal. A C1 control character has two
 * bytes in UTF-8. */
static void take_controls_out(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p; p++) {
        bool is_c1 = *p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;
        if (is_c1)
            p[1] = ' ';
        if (is_c1 || *p < ' ' || *p == 0x7f)
            *p = ' ';
    }
}

void sgi_engine_count_violation(sgi_engine *engine)
{
    engine->warnings++;
}

static void report_message(sgi_engine *engine, int32_t level, const char *text)
{
    segue_event event = sgi_event_new(engine, SGI_EVENT_message);
    event.level = level;
    event.message = text;
    sgi_event_report(engine, SGI_EVENT_message, &event);
}

void sgi_engine_log(sgi_engine *engine, int32_t level, const char *format, ...)
{
    bool is_logged = engine->host.log && level >= engine->log_level;
    bool is_event = sgi_engine_is_observed(engine, level);
    if (!is_logged && !is_event)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    sgi_text_vformat(text, sizeof text, format, args);
    va_end(args);
    take_controls_out(text);
    if (is_logged)
        engine->host.log(engine->host.user, level, text);
    if (is_event)
        report_message(engine, level, text);
}

segue_status sgi_refuse(sgi_engine *engine, segue_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(engine->refusal, sizeof engine->refusal, format, args);
    va_end(args);
    return status;
}

void sgi_refuse_clear_reason(sgi_engine *engine)
{
    engine->refusal[0] = 0;
}

const char *sgi_refusal_text(const sgi_engine *engine)
{
    return engine->refusal;
}

/* Returns the number of the line with this byte, beginning with 1. */
static size_t line_of(const char *text, size_t at)
{
    size_t line = 1;
    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

segue_status sgi_engine_check_json(sgi_engine *engine, const char *text, size_t len,
                                   sgi_json *value, sgi_json_error *error)
{
    sgi_json_error fault = {SGI_JSON_OK, 0};
    sgi_str whole = {text, len};
    if (!text)
        return sgi_refuse(engine, SEGUE_E_INVALID, "the JSON text is NULL");
    if (!sgi_json_read(&engine->reader, whole, NULL, 0, NULL, &fault)) {
        if (error)
            *error = fault;
        if (fault.fault == SGI_JSON_NOMEM)
            return SEGUE_E_NOMEM;
        segue_status status =
            fault.fault == SGI_JSON_SIZE ? SEGUE_E_TOO_LARGE : SEGUE_E_JSON;
        size_t line = line_of(text, fault.at);
        return line > 1 ? sgi_refuse(engine, status, "%s at byte %zu, in line %zu",
                                     sgi_json_fault_text(fault.fault), fault.at, line)
                        : sgi_refuse(engine, status, "%s at byte %zu",
                                     sgi_json_fault_text(fault.fault), fault.at);
    }
    *value = sgi_json_trim(whole);
    return SEGUE_OK;
}

static bool random_text(const sgi_env *env, char out[SGI_RANDOM_TEXT + 1])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t bytes[SGI_RANDOM_TEXT];
    if (!sgi_random(env, bytes, sizeof bytes))
        return false;
    for (size_t i = 0; i < SGI_RANDOM_TEXT; i++)
        out[i] = alphabet[bytes[i] & 63];
    out[SGI_RANDOM_TEXT] = 0;
    return true;
}

bool sgi_engine_random_text(sgi_engine *engine, char out[SGI_RANDOM_TEXT + 1])
{
    return random_text(&engine->env, out);
}

bool sgi_operation_text(const sgi_env *env, char out[SGI_OPERATION_TEXT + 1])
{
    /* in the order of their codes, so that texts are sorted by time */
    static const char digits[] =
        "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    const size_t count = SGI_OPERATION_TEXT - SGI_RANDOM_TEXT;
    uint64_t now = (uint64_t)sgi_wall_now(env);
    for (size_t i = count; i--; now >>= 6)
        out[i] = digits[now & 63];
    return random_text(env, out + count);
}

bool sgi_operation_id(const sgi_env *env, uint8_t id[SEGUE_STORE_ID_SIZE])
{
    const size_t count = 6;
    uint64_t now = (uint64_t)sgi_wall_now(env);
    for (size_t i = count; i--; now >>= 8)
        id[i] = (uint8_t)now;
    return sgi_random(env, id + count, SEGUE_STORE_ID_SIZE - count);
}

#define STAMP_LAST_MS INT64_C(253402300799999) /* the last millisecond of the year 9999 */

/* Computes the date from a number of days since 1970-01-01, with eras of 400 years
 * (proleptic Gregorian calendar). */
static void civil_date(int64_t days, int *year, unsigned *month, unsigned *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned in_era = (unsigned)(days - era * 146097);
    unsigned year_of_era =
        (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    unsigned in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    /* number of the month in a year that begins with March; 0 = March */
    unsigned shifted = (5 * in_year + 2) / 153;
    *day = in_year - (153 * shifted + 2) / 5 + 1;
    *month = shifted < 10 ? shifted + 3 : shifted - 9;
    *year = (int)(era * 400 + year_of_era) + (*month <= 2);
}

void sgi_timestamp_write(int64_t wall_ms, char out[SGI_STAMP_SIZE])
{
    /* A year in RFC 3339 has four digits, so a time before 1970 or after 9999 is replaced
     * by the nearest time in between. */
    if (wall_ms < 0 || wall_ms > STAMP_LAST_MS)
        wall_ms = wall_ms < 0 ? 0 : STAMP_LAST_MS;
    int64_t days = wall_ms / 86400000 - (wall_ms % 86400000 < 0);
    unsigned ms = (unsigned)(wall_ms - days * 86400000);
    int year;
    unsigned month, day;
    civil_date(days, &year, &month, &day);
    snprintf(out, SGI_STAMP_SIZE, "%04d-%02u-%02uT%02u:%02u:%02u.%03uZ", year, month, day,
             ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}
