/* Questions of the server, on the client (questions.c). A request that follows a task has
 * the questions of the task, which are added and removed one by one. Any other request
 * has rounds (SEP-2322): the server answers the request with questions in place of a
 * result, and the client sends the request again with the answers. */
#ifndef SGI_QUESTIONS_H
#define SGI_QUESTIONS_H

#include "engine/client/defaults.h"
#include "engine/client/tries.h"

typedef enum sgi_question_state {
    SGI_QUESTION_OPEN = 0, /* the application has the question and has not answered it */
    /* the application has answered, and the server has not acknowledged the answer yet */
    SGI_QUESTION_ANSWERED,
    /* the server has refused the answer, and may ask the question again */
    SGI_QUESTION_REFUSED,
    SGI_QUESTION_SETTLED /* the server has acknowledged the answer */
} sgi_question_state;

/* A question of the server for the application, and its answer. */
typedef struct sgi_question {
    TAILQ_ENTRY(sgi_question) link;
    char *key;
    sgi_form_defaults defaults;
    sgi_question_state state;
    char *answer; /* JSON text of the application's answer; NULL = not answered */
    size_t answer_len;
    /* the exchange that carries the answer; NULL = no such exchange is under way */
    sgi_emitter *updating;
    /* counts the attempts to send tasks/update, which carries the answer */
    sgi_tries tries;
    sgi_question_form form;
    /* true when no revision of the protocol defines the question's method */
    bool is_unknown;
} sgi_question;

/* The largest number of questions that may be asked of one request. */
#define SGI_QUESTIONS_MAX 1024

/* declared in server_question_list.h */
typedef struct sgi_server_question sgi_server_question;

/* The questions of one request. */
typedef struct sgi_questions {
    TAILQ_HEAD(, sgi_question) list;
    /* the questions that the server has sent as requests, one request for each
     * question */
    TAILQ_HEAD(, sgi_server_question) from_server;
    int32_t count; /* number of questions that the server has asked so far */
    /* number of rounds so far; a round is an answer of the server that has questions in
     * place of a result */
    int32_t rounds;
    /* requestState of the last round (JSON), which the client sends back; NULL = the
     * round had no requestState */
    char *state;
    size_t state_len;
} sgi_questions;

void sgi_questions_clear(segue_request *request);
/* Frees a question that is in no list. question may be NULL. */
void sgi_question_free(const sgi_mem *mem, sgi_question *question);
/* Returns the question with this key; NULL when the request has no such question. */
sgi_question *sgi_question_find(const segue_request *request, sgi_str key);
/* Adds the question that a member of inputRequests describes. Returns SEGUE_OK also when
 * the client already knows the question. Errors: SEGUE_E_PROTOCOL when the member is not
 * a valid question, SEGUE_E_LIMIT, SEGUE_E_NOMEM. */
segue_status sgi_question_add(segue_request *request, const sgi_json_member *member);
/* True when the question has an answer that must be sent now. */
static inline bool sgi_question_is_due(const sgi_question *question)
{
    return question->state == SGI_QUESTION_ANSWERED && !question->updating &&
           !sgi_tries_is_waiting(&question->tries);
}
/* Closes the question, because the server has acknowledged the answer. */
void sgi_question_acknowledge(sgi_question *question);
/* Handles the failure of an exchange that carried the answer to a question. The answer is
 * sent again later. If the server says that the answer is not valid for the question, the
 * application is asked again, and the function returns true. */
bool sgi_question_on_answer_failed(segue_request *request, sgi_question *question,
                                   const sgi_outcome *outcome);
/* Stops sending answers, because the request ends. */
void sgi_questions_stop_sending_answers(segue_request *request);
/* Finds the unanswered question with this key; NULL when there is no such question. */
sgi_question *sgi_question_find_open(segue_request *request, const char *key);
/* Stores the application's answer. Returns SEGUE_E_INVALID when the value cannot be an
 * answer or does not fit the form. */
segue_status sgi_question_answer(const segue_request *request, sgi_question *question,
                                 sgi_json answer);
/* True when at least one question of the request has no answer yet. */
bool sgi_questions_are_open(const segue_request *request);
/* True when the application has a question of the request that it has not answered, or
 * when the server has not acknowledged an answer. */
bool sgi_questions_are_under_way(const segue_request *request);
/* True when an answer with this resultType asks questions in place of a result (a
 * round). */
bool sgi_result_type_is_round(const segue_request *request, sgi_json type);
void sgi_questions_take_round(segue_request *request, sgi_json result);
/* sgi_questions_write_answers writes the answers into the params of a request that is
 * sent again. sgi_questions_override_member is true for a member of the application's
 * params that sgi_questions_write_answers replaces. */
void sgi_questions_write_answers(const segue_request *request, sgi_jw *w);
bool sgi_questions_override_member(const segue_request *request,
                                   const sgi_json_member *member);

#endif
