/* Collects the events of a runtime as lines of JSON, and checks that each event is in
 * core/engine/events.def, with no field that the table does not allow. */
#ifndef EVENT_LOG_H
#define EVENT_LOG_H

#include <segue/segue_ext.h>

typedef struct event_log {
    segue_runtime *runtime;
    char *text; /* the lines; NULL = no event has come */
    size_t len;
} event_log;

/* Begins to collect the events of all levels. argument_bytes: max_argument_bytes. */
void event_log_begin(event_log *log, segue_runtime *runtime, int32_t argument_bytes);
/* Observes the runtime no longer, unless it has ended (runtime is NULL), and frees the
 * lines. */
void event_log_end(event_log *log);
/* Returns the number of events of this name whose lines have this part; NULL = any. */
int event_log_count(const event_log *log, const char *name, const char *part);
/* Fails the test, and shows the events, if there is none. */
void event_log_sees(const event_log *log, const char *name, const char *part);
/* Fails the test if a line has this text. */
void event_log_has_nowhere(const event_log *log, const char *text);

#endif
