/* The error text and the error data for a limit that was reached: what there is too much
 * of, the name of the option that sets the limit, if there is one, and the value of the
 * limit. limits.def lists the limits. */
#ifndef SGI_LIMIT_H
#define SGI_LIMIT_H

#include "base/base.h"

typedef enum sgi_limit_id {
    SGI_LIMIT_NONE = 0,
#define LIMIT(id, name, kind) SGI_LIMIT_##id,
#include "base/limits.def"
#undef LIMIT
    SGI_LIMIT_COUNT
} sgi_limit_id;

typedef struct sgi_limit {
    sgi_limit_id id;
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

/* The name of a limit, as in the data of an error. */
const char *sgi_limit_name(sgi_limit_id id);
/* is_camel: true = the text names the option in camelCase (maxTasks). advice: stands at
 * the end of the text, such as "raise it on the server"; NULL = none. */
sgi_limit_text sgi_limit_describe(bool is_camel, const char *what, sgi_limit limit,
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
