/* A question for which the server has sent a request of its own. Two files use this
 * struct: server_questions.c receives questions and sends answers, server_question_list.c
 * keeps the list. */
#ifndef SGI_SERVER_QUESTION_LIST_H
#define SGI_SERVER_QUESTION_LIST_H

#include "engine/client/server_questions.h"
#include "engine/client/request.h"

struct sgi_server_question {
    TAILQ_ENTRY(sgi_server_question) link;
    /* JSON text of the question's id, in canonical form */
    char *id;
    /* the key that the application uses to answer the question */
    char *key;
    uint8_t question[SGI_DIGEST_SIZE]; /* digest of the question's method and params */
    /* JSON text of the task id that the question names; NULL = the question names no
     * task */
    char *related;
    sgi_defaults defaults;
    char *answer; /* JSON text of the application's answer, or NULL */
    size_t answer_len;
    int32_t wire_session;
    bool withdrawn;
    bool guessed; /* the question named no request, so the client chose this one */
    /* the question's request is resumable, so the question stays valid in later wire
     * sessions */
    bool resumes;
    /* the application has answered, but too many messages are under way to send the
     * answer now */
    bool due;
    bool failed;            /* the answer is an error object */
    bool elicits;           /* the question asks a person (elicitation) */
    segue_request *request; /* NULL until the question is in the list of a request */
    sgi_timer again;        /* fires when the answer has to be sent again */
    /* number of attempts to send the answer that were lost in a row */
    int32_t losses;
};

/* Frees a question that is in no list. */
void sgi_server_question_free(const sgi_mem *mem, sgi_server_question *server_question);
/* True when the id of the question is valid in the present wire session. */
bool sgi_server_question_is_of_session(const segue_session *session,
                                       const sgi_server_question *server_question);
/* True when the application has not answered the question yet. */
bool sgi_server_question_is_unanswered(const segue_session *session,
                                       const sgi_server_question *server_question);
/* Answers a request of the server with this error. problem NULL: answers with an empty
 * result instead. */
void sgi_server_question_reply_error(segue_session *session, sgi_str id, int32_t code,
                                     const char *problem);

#endif
