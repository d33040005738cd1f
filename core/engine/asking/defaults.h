/* What an answer to a server's question has to be, and the defaults of the forms that a
 * server asks its client to fill in (SEP-1034). Whoever
 * shows a form puts them into its fields, and what the person empties stays empty: so
 * they are filled in here only for applications that have no form
 * (segue_session_options, fill_defaults). Lock held. */
#ifndef SGI_DEFAULTS_H
#define SGI_DEFAULTS_H

#include "engine/asking/session.h"

/* So many fields of a form are looked at. */
#define SGI_DEFAULTS_MAX 1000

/* {} = there are none. */
typedef struct sgi_defaults {
    char *text; /* JSON: {"field":default,...} */
    size_t len;
} sgi_defaults;

/* What is to be known of a question until its answer; false: out of memory. */
bool sgi_defaults_keep(sgi_defaults *defaults, const segue_session *session,
                       sgi_str method, sgi_json params);
void sgi_defaults_free(sgi_defaults *defaults, const sgi_mem *mem);
/* A copy of the answer, and of what it leaves out where it accepts; NULL: out of memory.
 * Release with its length + 1. */
char *sgi_defaults_fill(const sgi_defaults *defaults, const sgi_mem *mem, sgi_json answer,
                        size_t *len);

/* Can it be the answer? A server that gets another one may wait for ever for a better:
 * the question is over for us, and open for it. elicits: it asks a person. */
bool sgi_can_answer(bool elicits, sgi_json answer);

#endif
