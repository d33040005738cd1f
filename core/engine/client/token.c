/* A resume token is "sg1." and a base64url text, which contains a checksum and a JSON
 * object. The token of a task has {"t":id,"e":next event,"s":next segment,"v":void
 * segments}. A task whose stream has reported questions adds "q":1. A task of 2025-11-25
 * adds "d":1 and has no events. A task of DRAFT-2026-v1 adds "d":2 and perhaps
 * "r":requestState. The token of a call whose answer was not delivered has
 * {"m":method,"p":params,"k":idempotency key}. When the call is sent again, the server
 * finds its operation by the key. The token of a resumable call has
 * {"m":method,"z":token of the server,"i":id,"w":minWait,"l":last event}. Tokens of
 * calls also have "s" and "v" when pieces of the result were delivered.
 *
 * An application may put segments into a queue of its own. A token that it then asks for
 * covers segments that are still in that queue. So the application stores the token, and
 * says in options.seen which segment it has processed when it resumes. */
#include "engine/client/dialects.h"

#define PREFIX "sg1."
#define CHECK_SIZE 8

/* True when the server can find the call again. The server cannot find a call that was
 * sent without a key. Sending the call again with a key would start a second call. */
static bool is_resumable(const segue_request *request)
{
    const segue_session *session = request->session;
    if (request->task_id || sgi_cli_is_resumable(request))
        return true;
    if (!request->key.text || !request->is_call)
        return false;
    return request->key.sent || (!request->call_id && (!sgi_session_is_open(session) ||
                                                       session->server.idempotency));
}

/* True when the request cannot be resumed any more, because on_complete has reported how
 * the server ended it. Before on_complete, a resumed request delivers again what the
 * application has not received. An error of the client ends only the request and not the
 * task, so the task can still be resumed. */
static bool is_over(const segue_request *request)
{
    if (request->phase != SGI_PHASE_REPORTED)
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

/* Writes the number of the next segment and the number of void segments. */
static void write_position(const segue_request *request, sgi_jw *w)
{
    if (!request->delivery.segment)
        return;
    sgi_jw_member_int(w, "s", (int64_t)request->delivery.segment + 1);
    sgi_jw_member_int(w, "v", (int64_t)request->delivery.voided);
}

static void write_state(const segue_request *request, sgi_buf *out)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    if (request->task_id) {
        request->follower->write_token(request, &w);
    } else if (sgi_cli_write_token_part(request, &w)) {
        write_position(request, &w);
    } else {
        sgi_jw_member_string(&w, "m", sgi_str_of(request->method));
        sgi_jw_member_string(&w, "k", sgi_str_of(request->key.text));
        if (request->params.p)
            sgi_jw_member_raw(&w, "p", request->params);
        write_position(request, &w);
    }
    sgi_jw_close(&w, '}');
}

segue_status sgi_resume_token_write(segue_request *request, sgi_buf *out)
{
    sgi_engine *engine = request->engine;
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_buf state;
    if (is_over(request))
        return SEGUE_E_TERMINAL;
    if (!is_resumable(request))
        return request->phase == SGI_PHASE_REPORTED ? SEGUE_E_TERMINAL
                                                    : SEGUE_E_NOT_RESUMABLE;
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
    request->key.kept |= ok;
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
           sgi_engine_check_json(engine, body.p, body.n, state, NULL) == SEGUE_OK;
}

/* Reads which segments were delivered, and which of them are void. The application learns
 * of void segments only together with the next segment. If the token names no delivered
 * segment after the void ones, the void segments were not reported, and void_segments is
 * 0. */
static bool read_position(sgi_json state, sgi_request_spec *spec)
{
    int64_t voided = 0;
    int64_t segment = 1;
    sgi_json_read_int(sgi_json_get(state, "s"), &segment);
    sgi_json_read_int(sgi_json_get(state, "v"), &voided);
    if (segment > 0 && segment <= spec->seen)
        segment = spec->seen + 1;
    spec->next_segment = (uint64_t)segment;
    spec->void_segments = voided > 0 && voided < segment - 1 ? (uint64_t)voided : 0;
    return segment > 0 && segment <= SGI_COUNT_MAX;
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

/* The content of a token. The texts of `spec` point into `bytes` and `id`. */
typedef struct opened {
    sgi_request_spec spec;
    sgi_buf bytes;
    sgi_buf id; /* the id of the task */
} opened;

static segue_status open_token(sgi_engine *engine, sgi_str text, opened *o)
{
    segue_status status;
    sgi_json state;
    sgi_buf_init(&o->bytes, sgi_engine_mem(engine));
    sgi_buf_init(&o->id, sgi_engine_mem(engine));
    if (!sgi_str_skip(&text, SGI_STR(PREFIX)))
        return SEGUE_E_INVALID;
    if (o->spec.options)
        o->spec.seen = o->spec.options->seen;
    if (!sgi_buf_add_unbase64(&o->bytes, text) || !verify(engine, &o->bytes, &state))
        return o->bytes.failed ? SEGUE_E_NOMEM : SEGUE_E_INVALID;
    o->spec.room = &o->id;
    if (sgi_cli_read_token_part(state, &o->spec, &status))
        return status == SEGUE_OK && !read_position(state, &o->spec) ? SEGUE_E_INVALID
                                                                     : status;
    return read_call(state, &o->spec);
}

static segue_status open_said(sgi_engine *engine, sgi_str text, opened *o)
{
    segue_status status = open_token(engine, text, o);
    return status == SEGUE_E_INVALID
               ? sgi_refuse(engine, status,
                            "the token is damaged, or was not made by this library")
               : status;
}

static void close_token(opened *o)
{
    sgi_buf_free(&o->bytes);
    sgi_buf_free(&o->id);
}

segue_status sgi_resume_token_era(sgi_engine *engine, const char *token, int32_t *era)
{
    opened o = {.bytes = {0}};
    segue_status status = open_said(engine, sgi_str_of(token), &o);
    if (o.spec.follower)
        *era = o.spec.follower->era;
    else
        *era = o.spec.inquiry ? SEGUE_ERA_LEGACY : SEGUE_ERA_AUTO;
    close_token(&o);
    return status;
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

segue_status sgi_request_new_from_token(segue_session *session, const char *token,
                                        const segue_request_options *options,
                                        const segue_request_events *events,
                                        segue_request **out)
{
    opened o = {.spec = {.options = options, .events = events}};
    return resume(session, token, &o, out);
}

segue_status sgi_task_handle_watch_by_token(segue_task *task,
                                            const segue_request_options *options,
                                            const segue_request_events *events,
                                            segue_request **out)
{
    opened o = {.spec = {.options = options, .events = events, .task = task}};
    return resume(task->session, task->token, &o, out);
}

/* Makes a task handle from a token. The token of a call without a task and without a
 * resume token of the server is refused. The client cannot ask for the state of such a
 * call; it can only send the call again. */
segue_status sgi_task_handle_new_from_token(segue_session *session, const char *token,
                                            segue_task **out)
{
    opened o = {.bytes = {0}};
    sgi_str text = sgi_str_of(token);
    segue_status status = open_said(session->engine, text, &o);
    if (status == SEGUE_OK && !o.spec.task_id.n && !o.spec.resume_token.n)
        status = sgi_refuse(session->engine, SEGUE_E_UNSUPPORTED,
                            "the token belongs to a call that is not a task: resume the "
                            "call with the token instead");
    if (status == SEGUE_OK)
        status = sgi_task_handle_new(session, &o.spec, text, out);
    close_token(&o);
    return status;
}
