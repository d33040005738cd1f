/* Does what a client answers fit what it was asked (R-2557-27)? Of a form that is all of
 * JSON Schema that the protocol allows there: a flat object of strings, numbers,
 * booleans and choices. */
#ifndef SGI_ANSWER_FORM_H
#define SGI_ANSWER_FORM_H

#include "wire/json_read.h"

/* method: of the question; params: its params, an object. */
bool sgi_answer_form_fits(sgi_str method, sgi_json params, sgi_json answer,
                          const sgi_mem *mem);

#endif
