/* What a person sees of the demo. On a terminal it is a bar that is redrawn in place,
 * with a mark for each kill and cut, below the lines of what happened. Otherwise it is
 * these lines and one line per quarter. */
#ifndef SCREEN_H
#define SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mark {
    MARK_SERVER_KILLED,
    MARK_CLIENT_KILLED,
    MARK_CUT,
    MARK_RESUMED,
    MARK_NONE
} mark;

#define SCREEN_CELLS 40

typedef struct screen {
    bool live;
    bool colour;
    bool utf8;
    size_t total;
    size_t segments;
    int64_t started_ms;
    int64_t drawn_ms;
    int64_t measured_ms; /* when the rate was last computed */
    size_t measured;     /* number of segments at that time */
    double rate;         /* segments per second */
    int quarters;        /* quarters that were printed, when not live */
    mark marks[SCREEN_CELLS];
} screen;

void screen_open(screen *s, size_t total, int64_t now_ms);

/* Prints one line about something that happened now; a kill or cut also marks the bar. */
void screen_tell(screen *s, int64_t now_ms, mark what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reports how many segments have arrived; draws when there is something new to see. */
void screen_progress(screen *s, int64_t now_ms, size_t segments);

/* Leaves the bar as it is and ends its line. */
void screen_close(screen *s, int64_t now_ms);

#endif
