/* Asking the application whether a value fits a schema (segue_validate_fn): the library
 * has no validator of its own. */
#ifndef SGI_VALIDATION_H
#define SGI_VALIDATION_H

#include "engine/engine.h"

#define SGI_REASON_SIZE 400

typedef struct sgi_validation {
    segue_validate_fn fn;
    void *user;
    const char *tool;
    int32_t what; /* segue_validation */
    sgi_json schema;
    sgi_json value;
    char reason[SGI_REASON_SIZE]; /* afterwards: one line of UTF-8, never empty */
} sgi_validation;

/* Runs user code: the lock is let go meanwhile, and all that is given stays where it is.
 * SEGUE_OK; SEGUE_E_INVALID when the value does not fit; SEGUE_E_UNSUPPORTED when that
 * cannot be told. */
segue_status sgi_validate(sgi_engine *engine, sgi_validation *validation);

#endif
