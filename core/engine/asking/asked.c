/* Answers are kept while their request lasts, for the server may ask again (R-975-16).
 * What stands for the session lasts as long as that, so it forgets its oldest ones. */
#include "engine/asking/asked.h"

#include "base/backoff.h"
#include "engine/asking/request.h"

static const sgi_backoff answering = {.first_ms = SGI_BACKOFF_FIRST_MS, .most_ms = 5000};

struct sgi_asked {
    TAILQ_ENTRY(sgi_asked) link;
    char *id;                          /* JSON text, canonical */
    char *key;                         /* for the application */
    uint8_t question[SGI_DIGEST_SIZE]; /* what it asks: method and params */
    char *related;                     /* JSON text of the task's id, or NULL */
    sgi_defaults defaults;
    char *answer; /* JSON, or NULL */
    size_t answer_len;
    int32_t wire_session;
    bool withdrawn;
    bool guessed;           /* nothing that is known said which request it is for */
    bool resumes;           /* its request can be resumed, and it with it */
    bool due;               /* answered, while too many messages were under way */
    bool failed;            /* the answer is an error object */
    bool elicits;           /* it asks a person */
    segue_request *request; /* once it is in its list */
    sgi_timer again;        /* the answer is sent once more */
    int32_t losses;         /* of the answer, in a row */
};

static void free_asked(const sgi_mem *mem, sgi_asked *asked)
{
    if (asked->request)
        sgi_engine_timer_clear(asked->request->engine, &asked->again);
    sgi_text_free(mem, asked->id);
    sgi_text_free(mem, asked->key);
    sgi_text_free(mem, asked->related);
    sgi_defaults_free(&asked->defaults, mem);
    if (asked->answer)
        sgi_release(mem, asked->answer, asked->answer_len + 1);
    sgi_release(mem, asked, sizeof *asked);
}

void sgi_asked_clear(segue_request *request)
{
    sgi_asked *asked;
    while ((asked = TAILQ_FIRST(&request->asked))) {
        TAILQ_REMOVE(&request->asked, asked, link);
        free_asked(sgi_engine_mem(request->engine), asked);
    }
}

/* What is asked by a request that can be resumed goes on in the next session, under the
 * same id; that is a text then, and so no other's. */
static bool is_of(const segue_session *session, const sgi_asked *asked)
{
    return asked->wire_session == session->wire_session || asked->resumes;
}

static bool is_open(const segue_session *session, const sgi_asked *asked)
{
    return !asked->answer && !asked->withdrawn && is_of(session, asked);
}

bool sgi_asked_is_open(const segue_request *request)
{
    const sgi_asked *asked;
    TAILQ_FOREACH(asked, &request->asked, link)
        if (is_open(request->session, asked))
            return true;
    return false;
}

static sgi_asked *find(segue_session *session, sgi_str id)
{
    segue_request *request;
    sgi_asked *asked;
    TAILQ_FOREACH(request, &session->requests, link)
        TAILQ_FOREACH(asked, &request->asked, link)
            if (is_of(session, asked) && sgi_str_eq(sgi_str_of(asked->id), id))
                return asked;
    return NULL;
}

/* ---- who is asked ---- */

static const struct {
    const char *method, *capability;
} askable[] = {{"elicitation/create", "elicitation"},
               {"sampling/createMessage", "sampling"},
               {"roots/list", "roots"}};

enum { ASKABLE = sizeof askable / sizeof *askable };

/* What the application has declared of it; empty = nothing. */
static sgi_json declared(const segue_session *session, sgi_json method)
{
    for (size_t i = 0; i < ASKABLE; i++)
        if (sgi_json_string_is(method, sgi_str_of(askable[i].method)))
            return sgi_json_get(sgi_buf_str(&session->capabilities),
                                askable[i].capability);
    return (sgi_json){0};
}

bool sgi_asked_is_known(sgi_str method)
{
    for (size_t i = 0; i < ASKABLE; i++)
        if (sgi_str_eq(method, sgi_str_of(askable[i].method)))
            return true;
    return false;
}

bool sgi_asked_may_come(const segue_session *session)
{
    sgi_json capabilities = sgi_buf_str(&session->capabilities);
    for (size_t i = 0; i < ASKABLE; i++)
        if (sgi_json_get(capabilities, askable[i].capability).n)
            return true;
    return false;
}

/* client/elicitation, "Error Handling": -32602 for a mode that was not declared. */
static bool is_undeclared_mode(sgi_json capability, sgi_json params)
{
    return sgi_json_string_is(sgi_json_get(params, "mode"), SGI_STR("url")) &&
           !sgi_json_get(capability, "url").n;
}

bool sgi_asked_refuses(const segue_session *session, const sgi_message *msg)
{
    return is_undeclared_mode(declared(session, msg->method), msg->params);
}

/* ---- asking ---- */

static bool digest(const segue_session *session, const sgi_message *msg,
                   uint8_t out[SGI_DIGEST_SIZE])
{
    const sgi_str parts[] = {msg->method, msg->params};
    return sgi_engine_digest(session->engine, out, parts, 2);
}

static void drop(sgi_asked *asked)
{
    segue_request *request = asked->request;
    TAILQ_REMOVE(&request->asked, asked, link);
    free_asked(sgi_engine_mem(request->engine), asked);
    request->question_count--;
}

/* A server that was started again may give an id once more, for something else. What is
 * said to the one is no answer to the other, so the first is over. */
static bool is_same(segue_session *session, sgi_asked *asked, const sgi_message *msg)
{
    uint8_t question[SGI_DIGEST_SIZE];
    if (digest(session, msg, question) &&
        !memcmp(question, asked->question, sizeof question))
        return true;
    session->engine->warnings++;
    sgi_engine_log(session->engine, SEGUE_LOG_WARNING,
                   "the server has asked two questions under the id %.64s: the first is "
                   "not answered any more",
                   asked->id);
    session->ids_reused++;
    drop(asked);
    return false;
}

static sgi_asked *make(segue_session *session, sgi_str id, sgi_json task_id)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    sgi_asked *asked = sgi_zalloc(mem, sizeof *asked);
    sgi_buf key;
    if (!asked)
        return NULL;
    sgi_buf_init(&key, mem);
    sgi_buf_add_int(&key, session->wire_session);
    sgi_buf_add_char(&key, ':');
    sgi_buf_add_str(&key, id);
    if (session->ids_reused) {
        sgi_buf_add_char(&key, ':');
        sgi_buf_add_int(&key, session->ids_reused);
    }
    asked->wire_session = session->wire_session;
    asked->id = sgi_text_dup(mem, id);
    asked->key = key.failed ? NULL : sgi_text_dup(mem, sgi_buf_str(&key));
    asked->related = task_id.n ? sgi_text_dup(mem, task_id) : NULL;
    sgi_buf_free(&key);
    if (asked->id && asked->key && (asked->related || !task_id.n))
        return asked;
    free_asked(mem, asked);
    return NULL;
}

/* To the application and into the list, or neither. */
static bool add(segue_request *request, sgi_asked *asked, const sgi_message *msg)
{
    sgi_inbox_head head = {.kind = SGI_RECORD_INPUT};
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_name_text(msg->method, room);
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(request->engine));
    sgi_buf_add_str(&text, sgi_str_of(asked->key));
    sgi_buf_add_char(&text, 0);
    sgi_buf_add_str(&text, method);
    sgi_buf_add_char(&text, 0);
    sgi_buf_add_str(&text, msg->params.n ? msg->params : SGI_STR("{}"));
    bool ok =
        !text.failed &&
        sgi_defaults_keep(&asked->defaults, request->session, method, msg->params) &&
        sgi_deliver(request, &head, sgi_buf_str(&text));
    sgi_buf_free(&text);
    if (!ok)
        return false;
    asked->resumes = request->resume_token && asked->id[0] == '"';
    asked->elicits = sgi_str_eq(method, SGI_STR("elicitation/create"));
    asked->request = request;
    TAILQ_INSERT_TAIL(&request->asked, asked, link);
    request->question_count++;
    return true;
}

static segue_status send_answer(segue_session *session, sgi_asked *asked);

/* Is nothing more to be done about it? */
static bool is_settled(const segue_session *session, const sgi_asked *asked)
{
    return !is_open(session, asked) && !asked->due && !asked->again.slot;
}

static bool has_room(segue_session *session, segue_request *request)
{
    sgi_asked *asked;
    if (request->question_count < SGI_QUESTIONS_MAX)
        return true;
    if (request->phase != SGI_PHASE_STAND)
        return false;
    TAILQ_FOREACH(asked, &request->asked, link)
        if (is_settled(session, asked))
            break;
    if (!asked)
        return false;
    drop(asked);
    return true;
}

static bool is_task_of(const segue_request *request, sgi_json task_id)
{
    return task_id.n && request->task_id &&
           sgi_json_string_is(task_id, sgi_str_of(request->task_id));
}

/* 0, or the code of the error that it is answered with; *problem says why. */
static int32_t take(segue_session *session, const sgi_message *msg, sgi_str id,
                    const char **problem)
{
    static const char beyond[] =
        "Too many questions: max_questions is " SGI_TEXT_OF(SGI_QUESTIONS_MAX);
    sgi_json capability = declared(session, msg->method);
    sgi_json related = sgi_json_get(sgi_json_get(msg->params, "_meta"), SGI_RELATED_TASK);
    sgi_json task_id = sgi_json_get(related, "taskId");
    *problem = "Method not found";
    if (!capability.n || sgi_version_is_modern(session->version))
        return SGI_RPC_METHOD_NOT_FOUND;
    *problem = "This mode of elicitation was not declared";
    if (is_undeclared_mode(capability, msg->params))
        return SGI_RPC_INVALID_PARAMS;
    sgi_asked *asked = find(session, id);
    if (asked && is_same(session, asked, msg)) {
        if (asked->answer && !asked->due)
            send_answer(session, asked);
        return 0;
    }
    segue_request *request = sgi_asked_owner(session, task_id);
    *problem = "Nobody is there to be asked";
    if (!request)
        return SGI_RPC_INTERNAL_ERROR;
    *problem = beyond;
    if (!has_room(session, request))
        return SGI_RPC_INTERNAL_ERROR;
    *problem = "Out of memory";
    asked = make(session, id, task_id);
    if (asked && !digest(session, msg, asked->question)) {
        free_asked(sgi_engine_mem(session->engine), asked);
        return SGI_RPC_INTERNAL_ERROR;
    }
    if (asked)
        asked->guessed = !session->hearing && !is_task_of(request, task_id);
    if (asked && add(request, asked, msg))
        return 0;
    if (asked)
        free_asked(sgi_engine_mem(session->engine), asked);
    return SGI_RPC_INTERNAL_ERROR;
}

bool sgi_asked_withdraw(segue_session *session, sgi_json params)
{
    sgi_json number = sgi_json_get(params, "requestId");
    sgi_buf id;
    if (!sgi_id_is_usable(number))
        return false;
    sgi_buf_init(&id, sgi_engine_mem(session->engine));
    sgi_id_canonical(number, &id);
    sgi_asked *asked = id.failed ? NULL : find(session, sgi_buf_str(&id));
    sgi_buf_free(&id);
    if (asked)
        asked->withdrawn = true;
    return asked != NULL;
}

/* ---- answering ---- */

static void write_members(sgi_jw *w, sgi_json object, const char *except)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_kind_of(object) == SGI_JSON_OBJECT &&
                        sgi_json_next_member(object, &at, &member);) {
        if (sgi_json_key_is(&member, except))
            continue;
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, member.value);
    }
}

/* What is said of a task names it (2025-11-25 basic/utilities/tasks, "Associating
 * Task-Related Messages"). */
static void write_answer(sgi_jw *w, const sgi_asked *asked)
{
    sgi_json answer = {asked->answer, asked->answer_len};
    write_members(w, answer, asked->related ? "_meta" : "");
    if (!asked->related)
        return;
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    write_members(w, sgi_json_get(answer, "_meta"), SGI_RELATED_TASK);
    sgi_jw_key(w, SGI_RELATED_TASK);
    sgi_jw_open(w, '{');
    sgi_jw_member_raw(w, "taskId", sgi_str_of(asked->related));
    sgi_jw_close(w, '}');
    sgi_jw_close(w, '}');
}

/* Over HTTP each answer is an exchange: so many at once, the others wait. What is
 * answered between two connections is asked again on the next (R-975-16), and told
 * then. */
static segue_status send_answer(segue_session *session, sgi_asked *asked)
{
    sgi_sending sending;
    if (!sgi_session_is_open(session))
        return SEGUE_OK;
    asked->due = session->conn->exchanging && session->telling >= SGI_TELLING_MAX;
    session->answers_due |= asked->due;
    if (asked->due)
        return SEGUE_OK;
    sgi_conn *conn = sgi_session_tell(session);
    if (!conn)
        return SEGUE_E_NOMEM;
    bool sent;
    if (asked->failed) {
        sgi_json error = {asked->answer, asked->answer_len};
        sent = sgi_send_error_object(conn, sgi_str_of(asked->id), error);
    } else {
        sgi_send_result(&sending, conn, sgi_str_of(asked->id), NULL);
        write_answer(&sending.w, asked);
        sent = sgi_send_end(&sending);
    }
    return sgi_session_told(session, conn) && sent ? SEGUE_OK : SEGUE_E_NOMEM;
}

static sgi_asked *find_open(segue_request *request, const char *key)
{
    segue_session *session = request->session;
    sgi_asked *asked;
    TAILQ_FOREACH(asked, &request->asked, link)
        if (!strcmp(asked->key, key))
            break;
    bool open = asked && is_open(session, asked) &&
                (sgi_session_is_open(session) || asked->resumes);
    return open ? asked : NULL;
}

/* answer: taken over; NULL = there was no memory for it. */
static segue_status give_answer(segue_session *session, sgi_asked *asked, char *answer,
                                size_t len, bool failed)
{
    if (!answer)
        return SEGUE_E_NOMEM;
    asked->answer = answer;
    asked->answer_len = len;
    asked->failed = failed;
    segue_status status = send_answer(session, asked);
    if (status != SEGUE_OK) {
        sgi_release(sgi_engine_mem(session->engine), answer, len + 1);
        asked->answer = NULL;
    }
    return status;
}

segue_status sgi_asked_answer(segue_request *request, const char *key, sgi_json answer)
{
    sgi_asked *asked = find_open(request, key);
    size_t len;
    if (!asked)
        return SEGUE_E_NOT_FOUND;
    if (!sgi_can_answer(asked->elicits, answer))
        return SEGUE_E_INVALID;
    char *filled = sgi_defaults_fill(&asked->defaults, sgi_engine_mem(request->engine),
                                     answer, &len);
    return give_answer(request->session, asked, filled, len, false);
}

segue_status sgi_asked_answer_error(segue_request *request, const char *key,
                                    sgi_json error)
{
    sgi_asked *asked = find_open(request, key);
    if (!asked)
        return SEGUE_E_NOT_FOUND;
    char *copy = sgi_text_dup(sgi_engine_mem(request->engine), error);
    return give_answer(request->session, asked, copy, error.n, true);
}

static void on_again(sgi_timer *timer)
{
    sgi_asked *asked = SGI_OWNER(timer, sgi_asked, again);
    segue_session *session = asked->request->session;
    if (is_of(session, asked) && send_answer(session, asked) != SEGUE_OK)
        sgi_asked_lost(session, sgi_str_of(asked->id));
}

/* Without end the server would wait for an answer that the application has given. */
void sgi_asked_lost(segue_session *session, sgi_str id)
{
    sgi_asked *asked = sgi_session_is_open(session) ? find(session, id) : NULL;
    if (!asked || !asked->answer || asked->withdrawn ||
        asked->losses >= session->options.max_reconnects)
        return;
    int64_t ms = sgi_backoff_ms(&answering, asked->losses++);
    sgi_engine_timer(session->engine, &asked->again, ms, on_again);
}

void sgi_asked_go(segue_session *session)
{
    segue_request *request;
    sgi_asked *asked;
    if (!session->answers_due || !sgi_session_is_open(session))
        return;
    session->answers_due = false; /* until there are too many again */
    TAILQ_FOREACH(request, &session->requests, link)
        TAILQ_FOREACH(asked, &request->asked, link)
            if (asked->due && is_of(session, asked))
                send_answer(session, asked);
}

/* ---- any request of the server ---- */

/* problem NULL = it was a ping. Over HTTP each answer is an exchange, and a server that
 * does not take them gets no more. */
static void answer_request(segue_session *session, sgi_str id, int32_t code,
                           const char *problem)
{
    sgi_sending sending;
    if (session->conn->exchanging && session->telling >= SGI_TELLING_MAX) {
        session->engine->warnings++;
        return;
    }
    sgi_conn *conn = sgi_session_tell(session);
    if (!conn)
        return;
    if (problem) {
        sgi_send_error(conn, id, code, sgi_str_of(problem), (sgi_json){0});
    } else {
        sgi_send_result(&sending, conn, id, NULL);
        sgi_send_end(&sending);
    }
    sgi_session_told(session, conn);
}

/* One that did not come by the request's own exchange may be another request's, which
 * waits. */
void sgi_asked_end(segue_request *request)
{
    segue_session *session = request->session;
    sgi_asked *asked;
    TAILQ_FOREACH(asked, &request->asked, link) {
        bool waits = asked->guessed || !session->conn->exchanging;
        if (!sgi_session_is_open(session) || !waits || !is_open(session, asked))
            continue;
        asked->withdrawn = true;
        answer_request(session, sgi_str_of(asked->id), SGI_RPC_INTERNAL_ERROR,
                       "The request that was asked has ended");
    }
}

/* Out of memory: a server that cannot be answered must not wait, nor who waits for it. */
static void cannot_answer(segue_session *session)
{
    if (!session->conn->exchanging)
        sgi_conn_close(session->conn);
    else if (session->hearing)
        sgi_emitter_lost(session->hearing, "out of memory", false);
}

/* Requests of the server exist in the handshake eras only: ping is answered, questions
 * are the application's, others are refused. */
void sgi_asked_handle(segue_session *session, const sgi_message *msg)
{
    const char *problem = NULL;
    int32_t code = 0;
    sgi_buf id;
    if (session->conn->exchanging && sgi_version_is_modern(session->version)) {
        session->engine->warnings++;
        return;
    }
    sgi_buf_init(&id, sgi_engine_mem(session->engine));
    sgi_id_canonical(msg->id, &id);
    bool is_ping = sgi_json_string_is(msg->method, SGI_STR("ping"));
    if (!is_ping && !id.failed)
        code = take(session, msg, sgi_buf_str(&id), &problem);
    if (id.failed)
        cannot_answer(session);
    else if (is_ping || code)
        answer_request(session, sgi_buf_str(&id), code, problem);
    sgi_buf_free(&id);
}

void sgi_asked_malformed(segue_session *session, const sgi_message *msg)
{
    sgi_buf id;
    if (!msg->id.n ||
        (session->conn->exchanging && sgi_version_is_modern(session->version)))
        return;
    sgi_buf_init(&id, sgi_engine_mem(session->engine));
    sgi_id_canonical(msg->id, &id);
    if (id.failed)
        cannot_answer(session);
    else
        answer_request(session, sgi_buf_str(&id), SGI_RPC_INVALID_REQUEST, msg->problem);
    sgi_buf_free(&id);
}
