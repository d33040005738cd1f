/* Is something an answer to what was asked, and does it fit the form? Of JSON Schema a
 * form has what the protocol allows there: a flat object of strings, numbers, booleans
 * and choices.
 *
 * The server asks again for what is no answer (R-2557-27). What does not fit its form it
 * gives to the handler all the same: the official conformance suite answers its own forms
 * so, and what asks with a type (the SDKs) looks itself. The client tells its application
 * before anything is sent. */
#ifndef SGI_ANSWER_FORM_H
#define SGI_ANSWER_FORM_H

#include "wire/json_read.h"

/* method: of the question. */
bool sgi_answer_is_one(sgi_str method, sgi_json answer);
/* schema: `requestedSchema`; answer: one to elicitation/create. */
bool sgi_answer_fits_form(sgi_json schema, sgi_json answer, const sgi_mem *mem);

#endif
