/* Decides how a request for a task is answered in SEP-1905 (dialect S; R-1905-4 to
 * R-1905-11), from the declarations of both sides and the request. All functions are
 * pure. */
#ifndef SGI_RESPONSE_MODES_H
#define SGI_RESPONSE_MODES_H

#include "wire/json_read.h"
#include "wire/json_write.h"

/* Response modes, as bits of a set. */
enum sgi_response_mode {
    /* a task; the client fetches the result when the task has ended */
    SGI_MODE_TASK = 1,
    SGI_MODE_IMMEDIATE = 2, /* the plain result, if it is ready at once */
    SGI_MODE_STREAMING = 4, /* a task whose segments are sent while they are made */
    /* an unknown word in a list of modes; no server offers such a mode */
    SGI_MODE_OTHER = 8
};
/* The set of all modes that have names. The values are those of segue_response_mode. */
#define SGI_MODES_ALL (SGI_MODE_TASK | SGI_MODE_IMMEDIATE | SGI_MODE_STREAMING)

/* Name of an experimental capability: the client accepts that segments become void. In
 * _meta of a response, the member with this name is the number of the last void segment
 * (R-1905-34). */
#define SGI_REPLACE "dev.segue/replace"
/* Name of a member of _meta: the number of segments of a result. The member is sent when
 * segments of the result continue the text of earlier segments. */
#define SGI_SEGMENTS "dev.segue/segments"

/* Returns the set of modes that a server with these dialects offers. */
uint8_t sgi_response_modes_of(uint32_t dialects);
/* Reads a list of modes. A mode that is listed twice counts once. An unknown word counts
 * as SGI_MODE_OTHER, which shows that the list is not empty (R-1905-6, R-1905-9). A
 * missing list gives an empty set. Returns false when the value is not an array of
 * strings. */
bool sgi_response_modes_read(sgi_json list, uint8_t *modes);
/* Returns the name of one mode; "" = the mode has no name. */
const char *sgi_response_mode_name(uint8_t mode);
/* Writes the member "<name>":[...] with these modes into an open JSON object. */
void sgi_response_modes_write(sgi_jw *w, const char *name, uint8_t modes);

/* The forms of a response. sgi_response_form_decide chooses one form. */
typedef enum sgi_response_form {
    /* a CreateTaskResult; the client fetches the result by tasks/result */
    SGI_FORM_TASK = 0,
    SGI_FORM_PLAIN,  /* the result itself */
    SGI_FORM_STREAM, /* a task whose segments are sent while they are made */
    SGI_FORM_AT_END  /* a task whose segments are all sent when the task has ended */
} sgi_response_form;

/* Chooses the form of the response. effective: the modes that the request lists, the
 * client has declared and the server offers. ready: the whole result exists. incremental:
 * the tool makes its result in pieces. */
sgi_response_form sgi_response_form_decide(uint8_t effective, bool ready,
                                           bool incremental);

/* True when the response is a task although the request lists only other modes
 * (R-1905-6). */
static inline bool sgi_response_is_fallback(sgi_response_form form, uint8_t listed)
{
    return form == SGI_FORM_TASK && listed && !(listed & SGI_MODE_TASK);
}

#endif
