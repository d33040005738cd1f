/* The id of a request that the server sends to ask its client something. It is a text,
 * and has 132 bits of chance for each time that a question is sent, so no process and no
 * server gives one twice, and nobody can guess one:
 *
 *     <operation>:<position>:<chance> in the store: what the operation is called there,
 *                                     and the position of the question in its log
 *     <server>:0:<chance>             of a call that only this process knows: its mark
 *     ... "/" <number>                a message of a question that is asked as a task
 *
 * So an answer names what it answers. The first form leads to its question also when the
 * process that asked has ended, or another server of the same store is answered
 * (late_answer.c). The second form means something as long as the request stands in the
 * table of its server (asks.c).
 *
 * Only sgi_question_id_make makes one, and only one of these can be sent as a question of
 * the handshake eras. What a request that can be resumed asks has an id that it keeps
 * (R-975-16): "<operation>:<position>", see resumable.h. */
#ifndef SGI_QUESTION_ID_H
#define SGI_QUESTION_ID_H

#include "engine/engine.h"
#include "wire/json_read.h"

#define SGI_POSITION_DIGITS 20
#define SGI_QUESTION_ID_MAX (2 * SGI_RANDOM_TEXT + SGI_POSITION_DIGITS + 2)
#define SGI_QUESTION_JSON (SGI_QUESTION_ID_MAX + SGI_POSITION_DIGITS + 4)

typedef struct sgi_question_id {
    char text[SGI_QUESTION_ID_MAX + 1]; /* "" = not made */
} sgi_question_id;

/* The parts of an id that a client has sent; views into it. */
typedef struct sgi_question_parts {
    sgi_str whole;     /* without the number */
    sgi_str operation; /* or the server */
    uint64_t position; /* 0 = of no operation in the store */
    bool is_numbered;
    int64_t number;
    bool is_lasting; /* it has no chance: of a request that can be resumed */
} sgi_question_parts;

/* of: the operation, or the server; SGI_RANDOM_TEXT characters. false: there is no
 * chance to be had. */
bool sgi_question_id_make(sgi_question_id *id, sgi_engine *engine, sgi_str of,
                          uint64_t position);
/* As JSON, in the room. number 0 = none. */
sgi_json sgi_question_id_json(const sgi_question_id *id, int64_t number,
                              char room[SGI_QUESTION_JSON]);
/* false: no server has made this id. */
bool sgi_question_id_read(sgi_json id, sgi_question_parts *parts);

#endif
