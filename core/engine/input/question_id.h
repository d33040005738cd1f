/* The id of a request by which the server asks its client a question. Each time a
 * question is sent, its id gets 132 random bits. So no two processes or servers make the
 * same id, and nobody can guess an id. The forms are:
 *   <operation>:<position>:<random>  for an operation in the store: the id of the
 *                                    operation, and the position of the question in its
 *                                    log
 *   <server>:0:<random>              for a call that only this process knows: the name
 *                                    of the server
 *   either form, "/" and <number>    for a message of a question that is asked as a task
 *
 * An answer has the id of its question. The first form leads to the question even when
 * the process that asked has ended, or when another server on the same store gets the
 * answer (late_answer.c). The second form is valid while the request is in the table of
 * its server (question_requests.c).
 *
 * Only sgi_question_id_make makes such ids, and all questions of the versions that
 * begin with `initialize` have such ids, except questions of lasting calls (the client
 * can leave and come back). The questions of a lasting call have lasting ids
 * (R-975-16), "<operation>:<position>", which are valid on every connection. */
#ifndef SGI_QUESTION_ID_H
#define SGI_QUESTION_ID_H

#include "engine/engine.h"
#include "wire/json_read.h"

#define SGI_POSITION_DIGITS 20
#define SGI_QUESTION_ID_MAX                                                              \
    (SGI_OPERATION_TEXT + SGI_RANDOM_TEXT + SGI_POSITION_DIGITS + 2)
#define SGI_QUESTION_JSON (SGI_QUESTION_ID_MAX + SGI_POSITION_DIGITS + 4)

typedef struct sgi_question_id_text {
    char text[SGI_QUESTION_ID_MAX + 1]; /* the id without quotes; "" = no id was made */
} sgi_question_id_text;

/* The parts of an id that a client has sent. The texts point into that id. */
typedef struct sgi_question_id_parts {
    sgi_str whole;     /* the id without the "/" and the number after it */
    sgi_str operation; /* id of the operation, or name of the server */
    /* position of the question in its log; 0 = the operation is not in the store */
    uint64_t position;
    bool is_numbered;
    int64_t number;
    /* the id has no random part, so it belongs to a question of a lasting call (its
     * client can leave and come back) */
    bool is_lasting;
} sgi_question_id_parts;

/* Makes an id. of: the id of the operation or the name of the server, SGI_RANDOM_TEXT
 * characters. position: as in sgi_question_id_parts. Returns false when no random bytes
 * are available. */
bool sgi_question_id_make(sgi_question_id_text *id, sgi_engine *engine, sgi_str of,
                          uint64_t position);
/* Writes the id as a JSON string into `room`, and returns this string. number = 0: the
 * string has no number. */
sgi_json sgi_question_id_write_json(const sgi_question_id_text *id, int64_t number,
                                    char room[SGI_QUESTION_JSON]);
/* Splits an id into its parts. Returns false when the id has none of the forms above. */
bool sgi_question_id_parse(sgi_json id, sgi_question_id_parts *parts);

#endif
