/* Recorded histories: what was said, line by line, and how it differs when one thing is
 * different (AS-119). */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct history_switch {
    const char *name;
    uint32_t bit; /* segue_dialect */
} history_switch;

/* All there are, ended by a NULL name. */
extern const history_switch history_switches[];
#define HISTORY_ALL_SWITCHES ((uint32_t)0x3fff)

typedef struct history {
    bool is_modern;
    char *text;
    size_t len;
} history;

void history_add(history *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void history_free(history *h);
/* It is tests/golden/<name>.txt; writes that when the environment has
 * SEGUE_GOLDEN=write. */
void history_assert_golden(const history *h, const char *name);

/* Sections begin with a line "> ...". Those that begin so may differ, as they declare;
 * NULL = any. */
typedef struct history_judge {
    char name[64];
    const char *declares, *lists;
    history differences;
} history_judge;

/* Notes in what `with` differs, under a heading; elsewhere than in sections that declare
 * that is a failure. Both have the same sections. */
void history_compare(history_judge *judge, const char *heading, const history *plain,
                     const history *with);
/* The differences are those of <name>_switches.txt. */
void history_end(history_judge *judge);

#endif
