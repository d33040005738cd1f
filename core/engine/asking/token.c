/* A resume token: "sg1." and base64url of a checksum and a JSON object. Of a task:
 * {"t":id,"e":next event,"s":next segment,"v":void segments}, with "d":1 of one of
 * 2025-11-25, which has no events, and with "d":2 and perhaps "r":requestState of one of
 * DRAFT-2026-v1. Of a call whose answer has not been handled:
 * {"m":method,"p":params,"k":idempotency key}: sent again it finds its operation; or, of
 * one that can be resumed, {"m":method,"z":token of the server,"i":id,"w":minWait,
 * "l":last event}. Both have "s" and "v" when pieces of it were handled.
 *
 * An application that reads segments from a queue of its own has not seen all that was
 * delivered when it asks for a token. It keeps the token from before what stands in the
 * queue, and adds the number of the segment that it has come to: "sg1....+17". */
#include "engine/asking/request.h"

#define PREFIX "sg1."
#define CHECK_SIZE 8

/* Can be found again at its server. A call that was sent without its key cannot: with the
 * key it would be a second one. */
static bool is_resumable(const segue_request *request)
{
    const segue_session *session = request->session;
    if (request->task_id || request->resume_token)
        return true;
    if (!request->key || !request->is_call)
        return false;
    return request->key_sent || (!request->call_id && (!sgi_session_is_open(session) ||
                                                       session->has_idempotency));
}

/* There is nothing to go on with: the application has been told an end that is the end
 * for the server, too. Until then there is: what it has not handled comes again. No other
 * error says anything of a task but that its reader has failed. */
static bool is_over(const segue_request *request)
{
    if (!request->completed)
        return false;
    switch (request->status) {
    case SEGUE_OK:
    case SEGUE_E_REMOTE:
    case SEGUE_E_TASK_LOST:
    case SEGUE_E_CANCELLED:
    case SEGUE_E_INCOMPLETE:
        return true;
    case SEGUE_E_CLOSED:
    case SEGUE_E_DISCONNECTED:
    case SEGUE_E_TIMEOUT:
        return false;
    default:
        return !request->task_id;
    }
}

/* Of pieces that were handled. */
static void write_position(const segue_request *request, sgi_jw *w)
{
    if (!request->delivered_segment)
        return;
    sgi_jw_member_int(w, "s", (int64_t)request->delivered_segment + 1);
    sgi_jw_member_int(w, "v", (int64_t)request->delivered_void);
}

static void write_state(const segue_request *request, sgi_buf *out)
{
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    if (request->task_id) {
        sgi_jw_member_string(&w, "t", sgi_str_of(request->task_id));
        sgi_jw_member_int(&w, "e", (int64_t)request->delivered_event);
        sgi_jw_member_int(&w, "s", (int64_t)request->delivered_segment + 1);
        sgi_jw_member_int(&w, "v", (int64_t)request->delivered_void);
        if (request->birth == SGI_BIRTH_2025)
            sgi_jw_member_int(&w, "d", 1);
        if (request->birth == SGI_BIRTH_DRAFT)
            sgi_jw_member_int(&w, "d", 2);
        if (request->birth == SGI_BIRTH_DRAFT && sgi_task_echo(request).n)
            sgi_jw_member_raw(&w, "r", sgi_task_echo(request));
    } else if (request->resume_token) {
        sgi_resume_write(request, &w);
        write_position(request, &w);
    } else {
        sgi_jw_member_string(&w, "m", sgi_str_of(request->method));
        sgi_jw_member_string(&w, "k", sgi_str_of(request->key));
        if (request->params)
            sgi_jw_member_raw(&w, "p", (sgi_str){request->params, request->params_len});
        write_position(request, &w);
    }
    sgi_jw_close(&w, '}');
}

segue_status sgi_token_write(segue_request *request, sgi_buf *out)
{
    sgi_engine *engine = request->engine;
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_buf state;
    if (is_over(request))
        return SEGUE_E_TERMINAL;
    if (!is_resumable(request))
        return request->completed ? SEGUE_E_TERMINAL : SEGUE_E_NOT_RESUMABLE;
    sgi_buf_init(&state, sgi_engine_mem(engine));
    for (int i = 0; i < CHECK_SIZE; i++)
        sgi_buf_add_char(&state, 0);
    write_state(request, &state);
    bool ok = !state.failed;
    if (ok) {
        sgi_str body = {state.p + CHECK_SIZE, state.len - CHECK_SIZE};
        ok = sgi_engine_digest(engine, digest, &body, 1);
    }
    if (ok) {
        memcpy(state.p, digest, CHECK_SIZE);
        sgi_buf_add_lit(out, PREFIX);
        sgi_buf_add_base64(out, state.p, state.len, true);
    }
    sgi_buf_free(&state);
    request->is_kept |= ok;
    return ok && !out->failed ? SEGUE_OK : SEGUE_E_NOMEM;
}

static bool verify(sgi_engine *engine, const sgi_buf *bytes, sgi_json *state)
{
    uint8_t digest[SGI_DIGEST_SIZE];
    if (bytes->len <= CHECK_SIZE)
        return false;
    sgi_str body = {bytes->p + CHECK_SIZE, bytes->len - CHECK_SIZE};
    return sgi_engine_digest(engine, digest, &body, 1) &&
           memcmp(digest, bytes->p, CHECK_SIZE) == 0 &&
           sgi_engine_json(engine, body.p, body.n, state, NULL) == SEGUE_OK;
}

/* Which segments were delivered. That those before the next one are void is told with it,
 * so it has not been, if nothing was delivered behind them. */
static bool read_position(sgi_json state, sgi_request_spec *spec)
{
    int64_t voided = 0;
    int64_t segment = 1;
    sgi_json_int(sgi_json_get(state, "s"), &segment);
    sgi_json_int(sgi_json_get(state, "v"), &voided);
    if (segment > 0 && segment <= spec->seen)
        segment = spec->seen + 1;
    spec->next_segment = (uint64_t)segment;
    spec->void_segments = voided > 0 && voided < segment - 1 ? (uint64_t)voided : 0;
    return segment > 0 && segment <= SGI_COUNT_MAX;
}

/* Of a task; its id is decoded into `id`. */
static segue_status read_task(sgi_json state, sgi_request_spec *spec, sgi_buf *id)
{
    int64_t event = 0;
    int64_t birth = 0;
    bool is_good = read_position(state, spec);
    sgi_json_decode(sgi_json_get(state, "t"), id);
    sgi_json_int(sgi_json_get(state, "e"), &event);
    spec->method = SGI_STR("tools/call");
    spec->task_id = sgi_buf_str(id);
    spec->next_event = (uint64_t)event;
    sgi_json_int(sgi_json_get(state, "d"), &birth);
    spec->birth = birth == 2   ? SGI_BIRTH_DRAFT
                  : birth == 1 ? SGI_BIRTH_2025
                               : SGI_BIRTH_EXTENSION;
    spec->echo = sgi_json_get(state, "r");
    if (id->failed)
        return SEGUE_E_NOMEM;
    is_good = is_good && event >= 0 && event <= SGI_COUNT_MAX && id->len &&
              !memchr(id->p, 0, id->len);
    return is_good ? SEGUE_OK : SEGUE_E_INVALID;
}

static segue_status read_call(sgi_json state, sgi_request_spec *spec)
{
    spec->params = sgi_json_get(state, "p");
    if (!sgi_json_plain_string(sgi_json_get(state, "m"), &spec->method) ||
        !sgi_json_plain_string(sgi_json_get(state, "k"), &spec->key) || !spec->key.n ||
        (spec->params.n && sgi_json_kind_of(spec->params) != SGI_JSON_OBJECT) ||
        !read_position(state, spec))
        return SEGUE_E_INVALID;
    return SEGUE_OK;
}

/* Takes "+17" off the end. */
static bool take_seen(sgi_str *text, int64_t *seen)
{
    const char *plus = memchr(text->p, '+', text->n);
    if (!plus)
        return true;
    sgi_json number = {plus + 1, text->n - (size_t)(plus + 1 - text->p)};
    text->n = (size_t)(plus - text->p);
    for (size_t i = 0; i < number.n; i++)
        if (number.p[i] < '0' || number.p[i] > '9')
            return false;
    return number.n && sgi_json_int(number, seen) && *seen < SGI_COUNT_MAX;
}

bool sgi_token_is(sgi_str text)
{
    return text.n >= sizeof PREFIX - 1 && memcmp(text.p, PREFIX, sizeof PREFIX - 1) == 0;
}

/* A token that was read: what the spec has are views of the buffers. */
typedef struct opened {
    sgi_request_spec spec;
    sgi_buf bytes;
    sgi_buf id; /* of a task */
} opened;

static segue_status open_token(sgi_engine *engine, sgi_str text, opened *o)
{
    sgi_json state;
    sgi_buf_init(&o->bytes, sgi_engine_mem(engine));
    sgi_buf_init(&o->id, sgi_engine_mem(engine));
    if (!sgi_token_is(text))
        return SEGUE_E_INVALID;
    text.p += sizeof PREFIX - 1;
    text.n -= sizeof PREFIX - 1;
    if (!take_seen(&text, &o->spec.seen))
        return SEGUE_E_INVALID;
    if (!sgi_buf_add_unbase64(&o->bytes, text) || !verify(engine, &o->bytes, &state))
        return o->bytes.failed ? SEGUE_E_NOMEM : SEGUE_E_INVALID;
    if (sgi_json_get(state, "t").n)
        return read_task(state, &o->spec, &o->id);
    if (sgi_json_get(state, "z").n)
        return sgi_resume_read(state, &o->spec) && read_position(state, &o->spec)
                   ? SEGUE_OK
                   : SEGUE_E_INVALID;
    return read_call(state, &o->spec);
}

static segue_status open_said(sgi_engine *engine, sgi_str text, opened *o)
{
    segue_status status = open_token(engine, text, o);
    return status == SEGUE_E_INVALID
               ? sgi_refuse(engine, status,
                            "the token is damaged, or none of this library")
               : status;
}

static void close_token(opened *o)
{
    sgi_buf_free(&o->bytes);
    sgi_buf_free(&o->id);
}

static segue_status resume(segue_session *session, const char *token, opened *o,
                           segue_request **out)
{
    segue_status status = open_said(session->engine, sgi_str_of(token), o);
    if (status == SEGUE_OK)
        status = sgi_request_new(session, &o->spec, out);
    close_token(o);
    return status;
}

segue_status sgi_token_resume(segue_session *session, const char *token,
                              const segue_request_options *options,
                              const segue_request_events *events, segue_request **out)
{
    opened o = {.spec = {.options = options, .events = events}};
    return resume(session, token, &o, out);
}

segue_status sgi_token_watch(segue_task *task, const segue_request_options *options,
                             const segue_request_events *events, segue_request **out)
{
    opened o = {.spec = {.options = options, .events = events, .task = task}};
    return resume(task->session, task->token, &o, out);
}

/* A call that is neither a task nor can be asked for has no state: to send it again is
 * all that can be done with its token. */
segue_status sgi_token_attach(segue_session *session, const char *token, segue_task **out)
{
    opened o = {.bytes = {0}};
    sgi_str text = sgi_str_of(token);
    segue_status status = open_said(session->engine, text, &o);
    if (status == SEGUE_OK && !o.spec.task_id.n && !o.spec.resume_token.n)
        status = sgi_refuse(session->engine, SEGUE_E_UNSUPPORTED,
                            "the token is that of a call which is no task: it can only "
                            "be resumed");
    if (status == SEGUE_OK)
        status = sgi_task_handle_new(session, &o.spec, text, out);
    close_token(&o);
    return status;
}
