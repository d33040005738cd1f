/* Checks answers to a server's questions, and fills in the defaults of the forms that a
 * server sends (SEP-1034). An application that shows the form puts the defaults into the
 * fields itself, and a field that a person has emptied must stay empty. So the library
 * fills in defaults only for applications that show no form (segue_session_options,
 * fill_defaults). All functions are called with the lock held. */
#ifndef SGI_DEFAULTS_H
#define SGI_DEFAULTS_H

#include "engine/client/session.h"

/* The largest number of fields of a form whose defaults are used. */
#define SGI_DEFAULTS_MAX 1000

/* The defaults of one form, as one JSON object. The object of a form without defaults is
 * {}. */
typedef struct sgi_form_defaults {
    char *text; /* JSON object: the default of each field, by name */
    size_t len;
} sgi_form_defaults;

/* Stores the defaults of a question until the question is answered. Returns false when
 * out of memory. */
bool sgi_form_defaults_store(sgi_form_defaults *defaults, const segue_session *session,
                             sgi_str method, sgi_json params);
void sgi_form_defaults_free(sgi_form_defaults *defaults, const sgi_mem *mem);
/* Returns a copy of the answer. If the answer accepts the form, fields that are missing
 * get their defaults. Returns NULL when out of memory. The caller frees the copy; its
 * memory has len + 1 bytes. */
char *sgi_form_defaults_fill_answer(const sgi_form_defaults *defaults, const sgi_mem *mem,
                                    sgi_json answer, size_t *len);

/* True when the value has the form of an answer. A server may wait for ever after an
 * invalid answer, while this client believes that the question was answered. elicits: the
 * question asks a person. */
bool sgi_answer_is_well_formed(bool elicits, sgi_json answer);

/* The params of a question that asks a person, as JSON text; NULL for any other
 * question. */
typedef struct sgi_question_form {
    char *text;
    size_t len;
} sgi_question_form;

/* Stores the form of a question. Returns false when out of memory. */
bool sgi_question_form_store(sgi_question_form *form, const sgi_mem *mem, sgi_str method,
                             sgi_json params);
void sgi_question_form_free(sgi_question_form *form, const sgi_mem *mem);
/* Makes a copy of the application's answer with the defaults filled in; its memory has
 * len + 1 bytes. Returns SEGUE_E_INVALID when the answer does not fit the form. A server
 * may ignore such an answer and keep the question open (R-2557-27), while the application
 * believes that the question is answered. */
segue_status sgi_question_form_take_answer(const sgi_question_form *form,
                                           const sgi_form_defaults *defaults,
                                           const sgi_mem *mem, sgi_json answer,
                                           char **out, size_t *len);

#endif
