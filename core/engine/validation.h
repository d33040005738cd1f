/* Asks the application whether a value fits a schema (segue_validate_fn), because the
 * library contains no validator. */
#ifndef SGI_VALIDATION_H
#define SGI_VALIDATION_H

#include "engine/engine.h"

#define SGI_REASON_SIZE 400

typedef struct sgi_validation {
    segue_validate_fn fn;
    void *user;
    const char *tool;
    int32_t what; /* the kind of value that is checked: a segue_validation */
    sgi_json schema;
    sgi_json value;
    /* the reason why the value does not fit: one line of UTF-8, never empty; set by
     * sgi_validate */
    char reason[SGI_REASON_SIZE];
} sgi_validation;

/* Calls the application's validator. The lock is released during the call, so the
 * arguments must stay valid and unchanged. Returns SEGUE_OK when the value fits,
 * SEGUE_E_INVALID when the value does not fit, and SEGUE_E_UNSUPPORTED when the validator
 * cannot decide. */
segue_status sgi_validate(sgi_engine *engine, sgi_validation *validation);

#endif
