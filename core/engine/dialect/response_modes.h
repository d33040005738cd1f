/* S: how a task-augmented request may be answered (SEP-1905, capability negotiation and
 * the server's decision). Pure functions; R-1905-4 to R-1905-11. */
#ifndef SGI_RESPONSE_MODES_H
#define SGI_RESPONSE_MODES_H

#include "wire/json_read.h"
#include "wire/json_write.h"

/* As a set. */
enum sgi_response_mode {
    SGI_MODE_TASK = 1,      /* fetched when it is done */
    SGI_MODE_IMMEDIATE = 2, /* the plain result, if it is ready at once */
    SGI_MODE_STREAMING = 4, /* segments as they are made */
    SGI_MODE_OTHER = 8      /* a word that is none of these: offered by nobody */
};
/* Those that have names; the values are those of segue_response_mode. */
#define SGI_MODES_ALL (SGI_MODE_TASK | SGI_MODE_IMMEDIATE | SGI_MODE_STREAMING)

/* The experimental capability of a client that takes it that segments are made void; the
 * same name in _meta of a response says up to which number (R-1905-34). */
#define SGI_REPLACE "dev.segue/replace"
/* How many segments a result was made of, where text of it went on. */
#define SGI_SEGMENTS "dev.segue/segments"

/* Those that a server with these dialects offers. */
uint8_t sgi_response_modes_of(uint32_t dialects);
/* Reads a list of modes; repeats count for nothing, nor do unknown words but as a list
 * that is not empty (R-1905-6, R-1905-9). False when it is no array of strings. Absent =
 * an empty set. */
bool sgi_response_modes_read(sgi_json list, uint8_t *modes);
/* The name of one mode. */
const char *sgi_response_mode_name(uint8_t mode);
/* "<name>":[...] into an object that is open. */
void sgi_response_modes_write(sgi_jw *w, const char *name, uint8_t modes);

/* The cases of the decision table. */
typedef enum sgi_response_form {
    SGI_FORM_TASK = 0, /* CreateTaskResult, the result by tasks/result */
    SGI_FORM_PLAIN,    /* the result itself */
    SGI_FORM_STREAM,   /* a task whose segments come as they are made */
    SGI_FORM_AT_END    /* a task whose segments come together with its end */
} sgi_response_form;

/* effective: what the request lists, the client declared and the server offers. ready:
 * the whole result is there. incremental: the tool's output comes in pieces. */
sgi_response_form sgi_response_decide(uint8_t effective, bool ready, bool incremental);

/* The task form was chosen though the request lists other modes only (R-1905-6). */
static inline bool sgi_response_is_fallback(sgi_response_form form, uint8_t listed)
{
    return form == SGI_FORM_TASK && listed && !(listed & SGI_MODE_TASK);
}

#endif
