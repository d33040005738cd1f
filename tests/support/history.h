/* Recorded histories: the messages of a run, line by line, and how they change when one
 * switch is set otherwise (AS-119). */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct history_switch {
    const char *name;
    uint32_t dialect; /* segue_dialect */
    uint32_t way;     /* segue_draft_way */
} history_switch;

/* All switches, ended by a NULL name. */
extern const history_switch history_switches[];
/* The dialects of all switches. */
uint32_t history_all_dialects(void);

typedef struct history {
    bool is_modern;
    char *text;
    size_t len;
} history;

void history_add(history *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void history_free(history *h);
/* Checks that the history equals tests/golden/<name>.txt. SEGUE_GOLDEN=write in the
 * environment writes that file. */
void history_assert_golden(const history *h, const char *name);

/* Sections begin with a line "> ...". The differences of a switch may stand only in
 * sections whose first line begins with this text; NULL = in any section. */
typedef struct history_judge {
    char name[64];
    const char *declares, *lists;
    history differences;
} history_judge;

/* Notes the differences between `plain` and `with`, under a heading. Both histories must
 * have the same sections. A difference in a section where none is allowed fails the
 * test. */
void history_compare(history_judge *judge, const char *heading, const history *plain,
                     const history *with);
/* Checks that the noted differences equal <name>_switches.txt. */
void history_end(history_judge *judge);

#endif
