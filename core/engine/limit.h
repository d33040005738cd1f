/* A limit that was reached, as those are told who are stopped by it: what there is too
 * much of, the name of the option (or of the measure), and its value. */
#ifndef SGI_LIMIT_H
#define SGI_LIMIT_H

#include "base/base.h"

typedef struct sgi_limit {
    const char *name;
    int64_t value;
} sgi_limit;

typedef struct sgi_limit_told {
    char text[320]; /* "Too many tasks: max_tasks is 100" */
    char data[128]; /* {"reason":<reason>,"limit":"max_tasks","value":100} */
} sgi_limit_told;

/* A number that the preprocessor knows, as text. */
#define SGI_TEXT_OF_NUMBER(number) #number
#define SGI_TEXT_OF(name) SGI_TEXT_OF_NUMBER(name)

sgi_limit_told sgi_limit_tell(const char *what, sgi_limit limit, const char *reason);
/* The same, and behind it what those who are stopped can do: "raise it on the server". */
sgi_limit_told sgi_limit_advise(const char *what, sgi_limit limit, const char *reason,
                                const char *advice);

#endif
