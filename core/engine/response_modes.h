/* Decides how a request for a task may be answered in dialect S (SEP-1905; R-1905-4 to
 * R-1905-11), by the declarations of both sides and by the request. All functions are
 * pure. */
#ifndef SGI_RESPONSE_MODES_H
#define SGI_RESPONSE_MODES_H

#include "wire/json_read.h"
#include "wire/json_write.h"

/* Response modes, as bits of a set. */
enum sgi_response_mode {
    SGI_MODE_TASK = 1,      /* a task; the client fetches the result at the task's end */
    SGI_MODE_IMMEDIATE = 2, /* the plain result, if it is ready at once */
    SGI_MODE_STREAMING = 4, /* a task whose segments are sent as they are made */
    /* an unknown word in a list of modes; no server offers such a mode */
    SGI_MODE_OTHER = 8
};
/* The modes that have names. The values are those of segue_response_mode. */
#define SGI_MODES_ALL (SGI_MODE_TASK | SGI_MODE_IMMEDIATE | SGI_MODE_STREAMING)

/* Name of the experimental capability of a client that accepts that segments become void.
 * In _meta of a response, the member of this name is the number up to which segments are
 * void (R-1905-34). */
#define SGI_REPLACE "dev.segue/replace"
/* Name of the member of _meta with the number of segments of a result. It is sent when
 * segments of the result continue the text of earlier ones. */
#define SGI_SEGMENTS "dev.segue/segments"

/* Returns the modes that a server with these dialects offers. */
uint8_t sgi_response_modes_of(uint32_t dialects);
/* Reads a list of modes. A mode that is listed twice counts once. An unknown word counts
 * as SGI_MODE_OTHER, which shows that the list is not empty (R-1905-6, R-1905-9). A
 * missing list is an empty set. Returns false when the value is not an array of
 * strings. */
bool sgi_response_modes_read(sgi_json list, uint8_t *modes);
/* Returns the name of one mode. */
const char *sgi_response_mode_name(uint8_t mode);
/* Writes "<name>":[...] into an open object. */
void sgi_response_modes_write(sgi_jw *w, const char *name, uint8_t modes);

/* The forms of a response, of which sgi_response_decide chooses one. */
typedef enum sgi_response_form {
    SGI_FORM_TASK = 0, /* CreateTaskResult; the client gets the result by tasks/result */
    SGI_FORM_PLAIN,    /* the result itself */
    SGI_FORM_STREAM,   /* a task whose segments are sent as they are made */
    SGI_FORM_AT_END    /* a task whose segments are sent together with its end */
} sgi_response_form;

/* Chooses the form of the response. effective: the modes that the request lists, the
 * client has declared and the server offers. ready: the whole result is there.
 * incremental: the tool makes its output in pieces. */
sgi_response_form sgi_response_decide(uint8_t effective, bool ready, bool incremental);

/* True when the task form was chosen although the request lists other modes only
 * (R-1905-6). */
static inline bool sgi_response_is_fallback(sgi_response_form form, uint8_t listed)
{
    return form == SGI_FORM_TASK && listed && !(listed & SGI_MODE_TASK);
}

#endif
