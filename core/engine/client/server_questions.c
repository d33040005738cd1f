/* Receives questions of the server and sends the application's answers. The client stores
 * an answer as long as the request of the question exists, because the server may ask
 * again (R-975-16). The request that receives questions for the session exists as long as
 * the session. At a limit its oldest answers are dropped. */
#include "engine/client/server_question_list.h"

#include "base/backoff.h"
#include "engine/client/dialects.h"
#include "wire/json_copy.h"

/* Returns the pause in ms before an answer is sent again. */
static int64_t pause_ms(int32_t failures)
{
    const sgi_backoff answering = {.first_ms = SGI_BACKOFF_FIRST_MS, .most_ms = 5000};
    return sgi_backoff_ms(&answering, failures);
}

static sgi_server_question *find(segue_session *session, sgi_str id)
{
    segue_request *request;
    sgi_server_question *server_question;
    TAILQ_FOREACH(request, &session->requests, link)
        TAILQ_FOREACH(server_question, &request->questions.from_server, link)
            if (sgi_server_question_is_of_session(session, server_question) &&
                sgi_str_eq(sgi_str_of(server_question->id), id))
                return server_question;
    return NULL;
}

/* ---- what the client declared ---- */

static const struct {
    const char *method, *capability;
} askable[] = {{"elicitation/create", "elicitation"},
               {"sampling/createMessage", "sampling"},
               {"roots/list", "roots"}};

enum { ASKABLE = sizeof askable / sizeof *askable };

/* Returns the capability that the application has declared for this kind of question;
 * empty when the application declared none. */
static sgi_json declared(const segue_session *session, sgi_json method)
{
    for (size_t i = 0; i < ASKABLE; i++)
        if (sgi_json_string_is(method, sgi_str_of(askable[i].method)))
            return sgi_json_get(sgi_buf_str(&session->handshake.capabilities),
                                askable[i].capability);
    return (sgi_json){0};
}

bool sgi_server_question_is_known_method(sgi_str method)
{
    for (size_t i = 0; i < ASKABLE; i++)
        if (sgi_str_eq(method, sgi_str_of(askable[i].method)))
            return true;
    return false;
}

bool sgi_server_questions_are_declared(const segue_session *session)
{
    sgi_json capabilities = sgi_buf_str(&session->handshake.capabilities);
    for (size_t i = 0; i < ASKABLE; i++)
        if (sgi_json_get(capabilities, askable[i].capability).n)
            return true;
    return false;
}

/* True when an elicitation has a mode that the client did not declare. The client refuses
 * such a question with -32602 (client/elicitation, "Error Handling"). A capability that
 * names no mode declares forms. */
static bool is_undeclared_mode(sgi_json capability, sgi_json params)
{
    sgi_json mode = sgi_json_get(params, "mode");
    bool has_url = sgi_json_get(capability, "url").n > 0;
    if (sgi_json_string_is(mode, SGI_STR("url")))
        return !has_url;
    if (mode.n && !sgi_json_string_is(mode, SGI_STR("form")))
        return true;
    return has_url && !sgi_json_get(capability, "form").n;
}

bool sgi_server_question_is_undeclared(const segue_session *session,
                                       const sgi_message *msg)
{
    return is_undeclared_mode(declared(session, msg->method), msg->params);
}

/* ---- receiving a question ---- */

static bool digest(const segue_session *session, const sgi_message *msg,
                   uint8_t out[SGI_DIGEST_SIZE])
{
    const sgi_str parts[] = {msg->method, msg->params};
    return sgi_engine_digest(session->engine, out, parts, 2);
}

static void drop(sgi_server_question *server_question)
{
    segue_request *request = server_question->request;
    TAILQ_REMOVE(&request->questions.from_server, server_question, link);
    sgi_server_question_free(sgi_engine_mem(request->engine), server_question);
    request->questions.count--;
}

/* True when the new question equals the known question with the same id. A restarted
 * server may use the id of an old question for a new question. The old answer would then
 * be wrong, so the old question is closed and false is returned. */
static bool is_same(segue_session *session, sgi_server_question *server_question,
                    const sgi_message *msg)
{
    uint8_t question[SGI_DIGEST_SIZE];
    if (digest(session, msg, question) &&
        !memcmp(question, server_question->question, sizeof question))
        return true;
    session->engine->warnings++;
    sgi_engine_log(session->engine, SEGUE_LOG_WARNING,
                   "the server has asked two questions with the id %.64s: the first one "
                   "gets no answer any more",
                   server_question->id);
    session->answers.ids_reused++;
    drop(server_question);
    return false;
}

static sgi_server_question *make(segue_session *session, sgi_str id, sgi_json task_id)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    sgi_server_question *server_question = sgi_zalloc(mem, sizeof *server_question);
    sgi_buf key;
    if (!server_question)
        return NULL;
    sgi_buf_init(&key, mem);
    sgi_buf_add_int(&key, session->wire_session);
    sgi_buf_add_char(&key, ':');
    sgi_buf_add_str(&key, id);
    if (session->answers.ids_reused) {
        sgi_buf_add_char(&key, ':');
        sgi_buf_add_int(&key, session->answers.ids_reused);
    }
    server_question->wire_session = session->wire_session;
    server_question->id = sgi_text_dup(mem, id);
    server_question->key = key.failed ? NULL : sgi_text_dup(mem, sgi_buf_str(&key));
    server_question->related = task_id.n ? sgi_text_dup(mem, task_id) : NULL;
    sgi_buf_free(&key);
    if (server_question->id && server_question->key &&
        (server_question->related || !task_id.n))
        return server_question;
    sgi_server_question_free(mem, server_question);
    return NULL;
}

static void append(segue_request *request, sgi_server_question *server_question)
{
    server_question->request = request;
    TAILQ_INSERT_TAIL(&request->questions.from_server, server_question, link);
    request->questions.count++;
}

/* Reports the question to the application and adds it to the list. On failure it does
 * neither. */
static bool add(segue_request *request, sgi_server_question *server_question,
                const sgi_message *msg)
{
    sgi_inbox_record_head head = {.kind = SGI_RECORD_INPUT};
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_method_text(msg->method, room);
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(request->engine));
    sgi_buf_add_str(&text, sgi_str_of(server_question->key));
    sgi_buf_add_char(&text, 0);
    sgi_buf_add_str(&text, method);
    sgi_buf_add_char(&text, 0);
    sgi_buf_add_str(&text, msg->params.n ? msg->params : SGI_STR("{}"));
    bool ok =
        !text.failed &&
        sgi_form_defaults_store(&server_question->defaults, request->session, method,
                                msg->params) &&
        sgi_question_form_store(&server_question->form, sgi_engine_mem(request->engine),
                                method, msg->params) &&
        sgi_inbox_add_record(request, &head, sgi_buf_str(&text));
    sgi_buf_free(&text);
    if (!ok)
        return false;
    server_question->resumes =
        sgi_cli_is_resumable(request) && server_question->id[0] == '"';
    append(request, server_question);
    return true;
}

static segue_status send_answer(segue_session *session,
                                sgi_server_question *server_question);

/* Sends the answer now, or after a pause when there is no memory now. */
static void send_answer_or_wait(segue_session *session,
                                sgi_server_question *server_question)
{
    if (send_answer(session, server_question) != SEGUE_OK)
        sgi_server_question_resend_answer(session, sgi_str_of(server_question->id));
}

/* True when the question is finished: its answer was sent and need not be sent again. */
static bool is_settled(const segue_session *session,
                       const sgi_server_question *server_question)
{
    return !sgi_server_question_is_unanswered(session, server_question) &&
           !server_question->due && !server_question->again.slot;
}

static bool has_room(segue_session *session, segue_request *request)
{
    sgi_server_question *server_question;
    if (request->questions.count < SGI_QUESTIONS_MAX)
        return true;
    if (request->phase != SGI_PHASE_STAND)
        return false;
    TAILQ_FOREACH(server_question, &request->questions.from_server, link)
        if (is_settled(session, server_question))
            break;
    if (!server_question)
        return false;
    drop(server_question);
    return true;
}

static bool is_task_of(const segue_request *request, sgi_json task_id)
{
    return task_id.n && request->task_id &&
           sgi_json_string_is(task_id, sgi_str_of(request->task_id));
}

/* Handles a question of the server. Returns 0 when the question was accepted. Otherwise
 * returns the error code for the client's answer, and sets *problem to the text of the
 * error. */
static int32_t take(segue_session *session, const sgi_message *msg, sgi_str id,
                    const char **problem)
{
    static const char beyond[] =
        "Too many questions: at most " SGI_TEXT_OF(SGI_QUESTIONS_MAX);
    sgi_json capability = declared(session, msg->method);
    sgi_json related = sgi_json_get(sgi_json_get(msg->params, "_meta"), SGI_RELATED_TASK);
    sgi_json task_id = sgi_json_get(related, "taskId");
    *problem = "Method not found";
    if (!capability.n || sgi_facts(session->version)->is_stateless)
        return SGI_RPC_METHOD_NOT_FOUND;
    *problem = "The client has not declared this mode of elicitation";
    if (is_undeclared_mode(capability, msg->params))
        return SGI_RPC_INVALID_PARAMS;
    sgi_server_question *server_question = find(session, id);
    if (server_question && is_same(session, server_question, msg)) {
        if (server_question->answer && !server_question->due)
            send_answer_or_wait(session, server_question);
        return 0;
    }
    segue_request *request = sgi_server_question_owner(session, task_id);
    *problem = "The client has no request that this question could belong to";
    if (!request)
        return SGI_RPC_INTERNAL_ERROR;
    *problem = beyond;
    if (!has_room(session, request))
        return SGI_RPC_INTERNAL_ERROR;
    *problem = "Out of memory";
    server_question = make(session, id, task_id);
    if (server_question && !digest(session, msg, server_question->question)) {
        sgi_server_question_free(sgi_engine_mem(session->engine), server_question);
        return SGI_RPC_INTERNAL_ERROR;
    }
    if (server_question)
        server_question->guessed = !session->hearing && !is_task_of(request, task_id);
    if (server_question && add(request, server_question, msg))
        return 0;
    if (server_question)
        sgi_server_question_free(sgi_engine_mem(session->engine), server_question);
    return SGI_RPC_INTERNAL_ERROR;
}

bool sgi_server_question_withdraw(segue_session *session, sgi_json params)
{
    sgi_json number = sgi_json_get(params, "requestId");
    sgi_buf id;
    if (!sgi_id_is_usable(number))
        return false;
    sgi_buf_init(&id, sgi_engine_mem(session->engine));
    sgi_id_write_canonical(number, &id);
    sgi_server_question *server_question =
        id.failed ? NULL : find(session, sgi_buf_str(&id));
    sgi_buf_free(&id);
    if (server_question)
        server_question->withdrawn = true;
    return server_question != NULL;
}

/* ---- sending an answer ---- */

/* Writes the answer to a question. The answer to a question about a task names the task
 * (2025-11-25 basic/utilities/tasks, "Associating Task-Related Messages"). */
static void write_answer(sgi_jw *w, const sgi_server_question *server_question)
{
    sgi_json answer = {server_question->answer, server_question->answer_len};
    sgi_jw_copy_members(w, answer,
                        server_question->related ? SGI_JSON_NAMES("_meta") : NULL);
    if (!server_question->related)
        return;
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    sgi_jw_copy_members(w, sgi_json_get(answer, "_meta"),
                        SGI_JSON_NAMES(SGI_RELATED_TASK));
    sgi_jw_key(w, SGI_RELATED_TASK);
    sgi_jw_open(w, '{');
    sgi_jw_member_raw(w, "taskId", sgi_str_of(server_question->related));
    sgi_jw_close(w, '}');
    sgi_jw_close(w, '}');
}

/* Sends the answer to a question. Over HTTP each answer is an exchange. The number of
 * these exchanges is limited, and answers above the limit wait. While the session is not
 * open, nothing is sent. On its next connection the server asks again (R-975-16) and then
 * gets the answer. */
static segue_status send_answer(segue_session *session,
                                sgi_server_question *server_question)
{
    sgi_sending sending;
    if (!sgi_session_is_open(session))
        return SEGUE_OK;
    server_question->due =
        session->conn->exchanging && session->answers.under_way >= SGI_TELLING_MAX;
    session->answers.due |= server_question->due;
    if (server_question->due)
        return SEGUE_OK;
    sgi_conn *conn = sgi_session_begin_message(session);
    if (!conn)
        return SEGUE_E_NOMEM;
    bool sent;
    if (server_question->failed) {
        sgi_json error = {server_question->answer, server_question->answer_len};
        sent = sgi_send_error_object(conn, sgi_str_of(server_question->id), error);
    } else {
        sgi_send_begin_result(&sending, conn, sgi_str_of(server_question->id), NULL);
        write_answer(&sending.w, server_question);
        sent = sgi_send_end(&sending);
    }
    bool ok = sgi_session_send_message(session, conn) && sent;
    server_question->carried = ok && session->conn->exchanging;
    return ok ? SEGUE_OK : SEGUE_E_NOMEM;
}

void sgi_server_question_note_taken(segue_session *session, sgi_str id)
{
    sgi_server_question *server_question = find(session, id);
    if (server_question)
        server_question->carried = false;
    if (server_question && server_question->refused)
        drop(server_question);
}

static sgi_server_question *find_open(segue_request *request, const char *key)
{
    segue_session *session = request->session;
    sgi_server_question *server_question;
    TAILQ_FOREACH(server_question, &request->questions.from_server, link)
        if (!strcmp(server_question->key, key))
            break;
    bool open = server_question &&
                sgi_server_question_is_unanswered(session, server_question) &&
                (sgi_session_is_open(session) || server_question->resumes);
    return open ? server_question : NULL;
}

/* Stores and sends the answer to a question. Takes ownership of `answer`. answer NULL:
 * the caller was out of memory. */
static segue_status give_answer(segue_session *session,
                                sgi_server_question *server_question, char *answer,
                                size_t len, bool failed)
{
    if (!answer)
        return SEGUE_E_NOMEM;
    server_question->answer = answer;
    server_question->answer_len = len;
    server_question->failed = failed;
    segue_status status = send_answer(session, server_question);
    if (status != SEGUE_OK) {
        sgi_free(sgi_engine_mem(session->engine), answer, len + 1);
        server_question->answer = NULL;
    }
    return status;
}

segue_status sgi_server_question_answer(segue_request *request, const char *key,
                                        sgi_json answer)
{
    sgi_server_question *server_question = find_open(request, key);
    size_t len;
    if (!server_question)
        return SEGUE_E_NOT_FOUND;
    char *filled;
    segue_status status = sgi_question_form_take_answer(
        &server_question->form, &server_question->defaults,
        sgi_engine_mem(request->engine), answer, &filled, &len);
    if (status != SEGUE_OK)
        return status;
    return give_answer(request->session, server_question, filled, len, false);
}

segue_status sgi_server_question_answer_error(segue_request *request, const char *key,
                                              sgi_json error)
{
    sgi_server_question *server_question = find_open(request, key);
    if (!server_question)
        return SEGUE_E_NOT_FOUND;
    char *copy = sgi_text_dup(sgi_engine_mem(request->engine), error);
    return give_answer(request->session, server_question, copy, error.n, true);
}

static void on_again(sgi_timer *timer)
{
    sgi_server_question *server_question = SGI_OWNER(timer, sgi_server_question, again);
    segue_session *session = server_question->request->session;
    if (sgi_server_question_is_of_session(session, server_question))
        send_answer_or_wait(session, server_question);
}

/* Sends the answer to a question again after a pause, because the server would wait for
 * ever without the answer. Gives up after max_reconnects losses in a row. */
void sgi_server_question_resend_answer(segue_session *session, sgi_str id)
{
    sgi_server_question *server_question =
        sgi_session_is_open(session) ? find(session, id) : NULL;
    if (!server_question || !server_question->answer || server_question->withdrawn ||
        server_question->losses >= session->options.max_reconnects)
        return;
    int64_t ms = pause_ms(server_question->losses++);
    server_question->carried = false;
    sgi_engine_set_timer(session->engine, &server_question->again, ms, on_again);
}

void sgi_server_questions_send_answers(segue_session *session)
{
    segue_request *request;
    sgi_server_question *server_question;
    if (!session->answers.due || !sgi_session_is_open(session))
        return;
    /* cleared before the loop, because send_answer sets `due` again when too many
     * messages are under way */
    session->answers.due = false;
    TAILQ_FOREACH(request, &session->requests, link)
        TAILQ_FOREACH(server_question, &request->questions.from_server, link)
            if (server_question->due &&
                sgi_server_question_is_of_session(session, server_question))
                send_answer_or_wait(session, server_question);
}

/* ---- all requests of the server ---- */

/* Handles an answer that cannot be sent because memory has run out. Closes a byte stream,
 * or reports an HTTP exchange as lost, so that neither side waits for ever. */
static void cannot_answer(segue_session *session)
{
    if (!session->conn->exchanging)
        sgi_conn_close(session->conn);
    else if (session->hearing)
        sgi_emitter_on_lost_exchange(session->hearing, "out of memory",
                                     SGI_LOSS_ANSWERED);
}

static char *write_error(const sgi_mem *mem, int32_t code, const char *problem,
                         size_t *len)
{
    sgi_buf text;
    sgi_buf_init(&text, mem);
    sgi_jw w = sgi_jw_to(&text);
    sgi_write_error_object(&w, code, sgi_str_of(problem), (sgi_json){0});
    char *copy = text.failed ? NULL : sgi_text_dup(mem, sgi_buf_str(&text));
    *len = text.len;
    sgi_buf_free(&text);
    return copy;
}

/* Answers a question with an error that is sent again when its exchange is lost: without
 * the error the server would wait for ever. Returns false when no request can keep the
 * error until then. */
static bool refuse_lastingly(segue_session *session, const sgi_message *msg, sgi_str id,
                             int32_t code, const char *problem)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    segue_request *keeper = sgi_server_question_find_keeper(session, NULL);
    sgi_server_question *server_question =
        keeper ? make(session, id, (sgi_json){0}) : NULL;
    size_t len = 0;
    if (!server_question)
        return false;
    char *error = write_error(mem, code, problem, &len);
    if (!error || !digest(session, msg, server_question->question)) {
        sgi_free(mem, error, len + 1);
        sgi_server_question_free(mem, server_question);
        return false;
    }
    server_question->refused = true;
    append(keeper, server_question);
    if (give_answer(session, server_question, error, len, true) == SEGUE_OK)
        return true;
    drop(server_question);
    return false;
}

static void refuse(segue_session *session, const sgi_message *msg, sgi_str id,
                   int32_t code, const char *problem)
{
    bool may_be_lost = session->conn->exchanging && sgi_session_is_open(session);
    if (!may_be_lost || !refuse_lastingly(session, msg, id, code, problem))
        sgi_server_question_reply_error(session, id, code, problem);
}

/* Handles a request of the server. Only versions that begin with `initialize` have such
 * requests. The client itself answers ping. Questions go to the application. All other
 * requests are refused. */
void sgi_server_question_handle(segue_session *session, const sgi_message *msg)
{
    const char *problem = NULL;
    int32_t code = 0;
    sgi_buf id;
    if (session->conn->exchanging && sgi_facts(session->version)->is_stateless) {
        session->engine->warnings++;
        return;
    }
    sgi_buf_init(&id, sgi_engine_mem(session->engine));
    sgi_id_write_canonical(msg->id, &id);
    bool is_ping = sgi_json_string_is(msg->method, SGI_STR("ping"));
    if (!is_ping && !id.failed)
        code = take(session, msg, sgi_buf_str(&id), &problem);
    if (id.failed)
        cannot_answer(session);
    else if (is_ping)
        sgi_server_question_reply_error(session, sgi_buf_str(&id), 0, NULL);
    else if (code)
        refuse(session, msg, sgi_buf_str(&id), code, problem);
    sgi_buf_free(&id);
}

void sgi_server_question_refuse_malformed(segue_session *session, const sgi_message *msg)
{
    sgi_buf id;
    if (!msg->id.n ||
        (session->conn->exchanging && sgi_facts(session->version)->is_stateless))
        return;
    sgi_buf_init(&id, sgi_engine_mem(session->engine));
    sgi_id_write_canonical(msg->id, &id);
    if (id.failed)
        cannot_answer(session);
    else
        sgi_server_question_reply_error(session, sgi_buf_str(&id),
                                        SGI_RPC_INVALID_REQUEST, msg->problem);
    sgi_buf_free(&id);
}
