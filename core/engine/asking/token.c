/* A resume token: "sg1." and base64url of a checksum and a JSON object. Of a task:
 * {"t":id,"e":next event,"s":next segment,"v":void segments}, with "d":1 of one of
 * 2025-11-25, which has no events, and with "d":2 and perhaps "r":requestState of one of
 * DRAFT-2026-v1. Of a call whose answer has
 * not come: {"m":method,"p":params,"k":idempotency key}, with
 * "s" and "v" when pieces of it have: sent again it finds its
 * operation; or, of one that can be resumed, {"m":method,"z":token of the server,"i":id,
 * "w":minWait,"l":last event}. */
#include "engine/asking/request.h"

#define PREFIX "sg1."
#define CHECK_SIZE 8

static bool is_resumable(const segue_request *request)
{
    if (request->task_id)
        return request->phase == SGI_PHASE_FOLLOW || request->status == SEGUE_E_CLOSED ||
               request->status == SEGUE_E_DISCONNECTED ||
               request->status == SEGUE_E_TIMEOUT;
    if (request->resume_token)
        return request->phase == SGI_PHASE_WAIT || request->status == SEGUE_E_CLOSED ||
               request->status == SEGUE_E_DISCONNECTED ||
               request->status == SEGUE_E_TIMEOUT;
    return request->key && request->is_call &&
           (request->key_sent || !sgi_session_is_open(request->session) ||
            request->session->has_idempotency);
}

static void write_state(const segue_request *request, sgi_buf *out)
{
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    if (request->task_id) {
        sgi_jw_member_string(&w, "t", sgi_str_of(request->task_id));
        sgi_jw_member_int(&w, "e", (int64_t)request->delivered_event);
        sgi_jw_member_int(&w, "s", (int64_t)request->delivered_segment + 1);
        sgi_jw_member_int(&w, "v", (int64_t)request->void_segments);
        if (request->birth == SGI_BIRTH_2025)
            sgi_jw_member_int(&w, "d", 1);
        if (request->birth == SGI_BIRTH_DRAFT)
            sgi_jw_member_int(&w, "d", 2);
        if (request->birth == SGI_BIRTH_DRAFT && sgi_task_echo(request).n)
            sgi_jw_member_raw(&w, "r", sgi_task_echo(request));
    } else if (request->resume_token) {
        sgi_resume_write(request, &w);
    } else {
        sgi_jw_member_string(&w, "m", sgi_str_of(request->method));
        sgi_jw_member_string(&w, "k", sgi_str_of(request->key));
        if (request->params)
            sgi_jw_member_raw(&w, "p", (sgi_str){request->params, request->params_len});
        if (request->delivered_segment) { /* as pieces; they come again */
            sgi_jw_member_int(&w, "s", (int64_t)request->delivered_segment + 1);
            sgi_jw_member_int(&w, "v", (int64_t)request->void_segments);
        }
    }
    sgi_jw_close(&w, '}');
}

segue_status sgi_token_write(segue_request *request, sgi_buf *out)
{
    sgi_engine *engine = request->engine;
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_buf state;
    if (!is_resumable(request))
        return request->phase == SGI_PHASE_DONE ? SEGUE_E_TERMINAL
                                                : SEGUE_E_NOT_RESUMABLE;
    sgi_buf_init(&state, sgi_engine_mem(engine));
    for (int i = 0; i < CHECK_SIZE; i++)
        sgi_buf_add_char(&state, 0);
    write_state(request, &state);
    bool ok = !state.failed;
    if (ok) {
        sgi_str body = {state.p + CHECK_SIZE, state.len - CHECK_SIZE};
        ok = engine->digest(digest, &body, 1);
    }
    if (ok) {
        memcpy(state.p, digest, CHECK_SIZE);
        sgi_buf_add_lit(out, PREFIX);
        sgi_buf_add_base64(out, state.p, state.len, true);
    }
    sgi_buf_free(&state);
    return ok && !out->failed ? SEGUE_OK : SEGUE_E_NOMEM;
}

static bool verify(sgi_engine *engine, const sgi_buf *bytes, sgi_json *state)
{
    uint8_t digest[SGI_DIGEST_SIZE];
    if (bytes->len <= CHECK_SIZE)
        return false;
    sgi_str body = {bytes->p + CHECK_SIZE, bytes->len - CHECK_SIZE};
    return engine->digest(digest, &body, 1) &&
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
    spec->next_segment = (uint64_t)segment;
    spec->void_segments = voided > 0 && voided < segment - 1 ? (uint64_t)voided : 0;
    return segment > 0 && segment <= SGI_COUNT_MAX;
}

static segue_status resume_task(segue_session *session, sgi_json state,
                                sgi_request_spec *spec, segue_request **out)
{
    int64_t event = 0;
    int64_t birth = 0;
    bool is_good = read_position(state, spec);
    sgi_buf id;
    sgi_buf_init(&id, sgi_engine_mem(session->engine));
    sgi_json_decode(sgi_json_get(state, "t"), &id);
    sgi_json_int(sgi_json_get(state, "e"), &event);
    spec->method = SGI_STR("tools/call");
    spec->task_id = sgi_buf_str(&id);
    spec->next_event = (uint64_t)event;
    sgi_json_int(sgi_json_get(state, "d"), &birth);
    spec->birth = birth == 2   ? SGI_BIRTH_DRAFT
                  : birth == 1 ? SGI_BIRTH_2025
                               : SGI_BIRTH_EXTENSION;
    spec->echo = sgi_json_get(state, "r");
    segue_status status = SEGUE_E_INVALID;
    if (id.failed)
        status = SEGUE_E_NOMEM;
    else if (event >= 0 && event <= SGI_COUNT_MAX && is_good && id.len &&
             !memchr(id.p, 0, id.len))
        status = sgi_request_new(session, spec, out);
    sgi_buf_free(&id);
    return status;
}

static segue_status resume_call(segue_session *session, sgi_json state,
                                sgi_request_spec *spec, segue_request **out)
{
    spec->params = sgi_json_get(state, "p");
    if (!sgi_json_plain_string(sgi_json_get(state, "m"), &spec->method) ||
        !sgi_json_plain_string(sgi_json_get(state, "k"), &spec->key) || !spec->key.n ||
        (spec->params.n && sgi_json_kind_of(spec->params) != SGI_JSON_OBJECT) ||
        !read_position(state, spec))
        return SEGUE_E_INVALID;
    return sgi_request_new(session, spec, out);
}

segue_status sgi_token_resume(segue_session *session, const char *token,
                              const segue_request_options *options,
                              const segue_request_events *events, segue_request **out)
{
    sgi_request_spec spec = {.options = options, .events = events};
    sgi_str text = sgi_str_of(token);
    sgi_buf bytes;
    sgi_json state;
    segue_status status = SEGUE_E_INVALID;
    if (text.n <= sizeof PREFIX - 1 || memcmp(text.p, PREFIX, sizeof PREFIX - 1) != 0)
        return SEGUE_E_INVALID;
    text.p += sizeof PREFIX - 1;
    text.n -= sizeof PREFIX - 1;
    sgi_buf_init(&bytes, sgi_engine_mem(session->engine));
    if (sgi_buf_add_unbase64(&bytes, text) && verify(session->engine, &bytes, &state)) {
        if (sgi_json_get(state, "t").n)
            status = resume_task(session, state, &spec, out);
        else if (sgi_json_get(state, "z").n)
            status = sgi_resume_read(session, state, &spec, out);
        else
            status = resume_call(session, state, &spec, out);
    } else if (bytes.failed) {
        status = SEGUE_E_NOMEM;
    }
    sgi_buf_free(&bytes);
    return status;
}
