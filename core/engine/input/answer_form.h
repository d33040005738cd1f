/* Checks whether a JSON value is an answer to a question, and whether an answer fits the
 * requested form. A form is the part of JSON Schema that the protocol allows for
 * questions: a flat object of strings, numbers, booleans and choices.
 *
 * If a client sends a value that is not an answer, the server asks again (R-2557-27). An
 * answer that does not fit its form is still given to the handler: the official
 * conformance suite answers its own forms in this way, and the SDKs check typed answers
 * themselves. Before a client sends an answer that does not fit, it reports this to its
 * application. */
#ifndef SGI_ANSWER_FORM_H
#define SGI_ANSWER_FORM_H

#include "wire/json_read.h"

/* True when the answer has the members that every answer to a question of this method
 * must have. */
bool sgi_answer_is_valid(sgi_str method, sgi_json answer);
/* True when the answer fits the form. schema: the member requestedSchema of the question.
 * answer: an answer to elicitation/create. */
bool sgi_answer_fits_form(sgi_json schema, sgi_json answer, const sgi_mem *mem);

#endif
