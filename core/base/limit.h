/* The error text and the error data for a limit that was reached: what there is too much
 * of, the name of the limit (an option or a measured value), and the value of the
 * limit. */
#ifndef SGI_LIMIT_H
#define SGI_LIMIT_H

#include "base/base.h"

typedef struct sgi_limit {
    const char *name;
    int64_t value;
} sgi_limit;

typedef struct sgi_limit_text {
    char text[320]; /* the error text, such as "Too many tasks: max_tasks is 100" */
    /* the error's data: {"reason":<reason>,"limit":"max_tasks","value":100} */
    char data[128];
} sgi_limit_text;

/* The value of a macro as a string literal. */
#define SGI_TEXT_OF_NUMBER(number) #number
#define SGI_TEXT_OF(name) SGI_TEXT_OF_NUMBER(name)

sgi_limit_text sgi_limit_describe(const char *what, sgi_limit limit, const char *reason);
/* Like sgi_limit_describe, with advice at the end of the text, such as "raise it on the
 * server". */
sgi_limit_text sgi_limit_describe_with_advice(const char *what, sgi_limit limit,
                                              const char *reason, const char *advice);

/* The value of an option, and the range of values that are allowed. */
typedef struct sgi_range {
    const char *name;
    int64_t value, least, most;
} sgi_range;

/* size in bytes of the text buffer that sgi_ranges_check needs */
#define SGI_RANGE_TOLD 96
/* Returns false when a number is out of its range, and writes to `why` a text that names
 * the number. */
bool sgi_ranges_check(const sgi_range *ranges, size_t count, char *why, size_t size);

#endif
