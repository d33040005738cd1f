/* A question for which the server has sent a request of its own. server_questions.c
 * receives the questions and sends the answers. server_question_list.c keeps the list of
 * the questions. */
#ifndef SGI_SERVER_QUESTION_LIST_H
#define SGI_SERVER_QUESTION_LIST_H

#include "engine/client/server_questions.h"
#include "engine/client/request.h"

struct sgi_server_question {
    TAILQ_ENTRY(sgi_server_question) link;
    /* JSON text of the question's JSON-RPC id, in canonical form */
    char *id;
    /* the key by which the application answers the question */
    char *key;
    uint8_t question[SGI_DIGEST_SIZE]; /* digest of the question's method and params */
    /* JSON text of the task id that the question names; NULL = the question names no
     * task */
    char *related;
    sgi_form_defaults defaults;
    sgi_question_form form;
    char *answer; /* JSON text of the application's answer; NULL = not answered */
    size_t answer_len;
    int32_t wire_session;
    bool withdrawn;
    /* true when the question did not name a request of the client, so that the client
     * chose the request to which the question belongs */
    bool guessed;
    /* true when the question belongs to a resumable request (SEP-975), so that the
     * question stays valid in later wire sessions */
    bool resumes;
    /* true when the application has answered, and the answer waits because too many
     * messages are under way */
    bool due;
    /* true when an exchange carries the answer, and the server has not taken it yet */
    bool carried;
    bool failed;  /* true when the answer is an error object */
    bool refused; /* true when the client has refused the question by itself */
    /* the request that has the question in its list; NULL = not yet in a list */
    segue_request *request;
    sgi_timer again; /* fires when the answer has to be sent again */
    /* number of attempts in a row in which the answer was lost */
    int32_t losses;
};

/* Frees a question. The question must not be in a list. */
void sgi_server_question_free(const sgi_mem *mem, sgi_server_question *server_question);
/* True when the id of the question is valid in the present wire session. */
bool sgi_server_question_is_of_session(const segue_session *session,
                                       const sgi_server_question *server_question);
/* True when the application has not answered the question yet. */
bool sgi_server_question_is_unanswered(const segue_session *session,
                                       const sgi_server_question *server_question);
/* Returns a request of the session that can keep a question of the request `from`, or of
 * no request (NULL). The request that receives questions for the session is the best.
 * Half of the room of each request stays free for questions of its own. Returns NULL when
 * there is no such request. */
segue_request *sgi_server_question_find_keeper(segue_session *session,
                                               const segue_request *from);
/* Answers a request of the server with an error. problem: the text of the error; NULL =
 * answers with an empty result instead. */
void sgi_server_question_reply_error(segue_session *session, sgi_str id, int32_t code,
                                     const char *problem);

#endif
