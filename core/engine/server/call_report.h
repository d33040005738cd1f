/* Events about a call (engine/event.h): which call it is, without its arguments, its
 * result and the secret part of its task id. */
#ifndef SGI_CALL_REPORT_H
#define SGI_CALL_REPORT_H

#include "engine/event.h"
#include "engine/server/call.h"

/* The number of characters of a task id that an event has. They find the events of one
 * task; the rest of the id, which gives access to the task, is secret. */
#define SGI_EVENT_TASK 12

/* An event about a call, with room for its texts. */
typedef struct sgi_call_event {
    segue_event event;
    char task[SGI_EVENT_TASK + 1];
    char trace_parent[SGI_TRACE_PARENT + 1];
} sgi_call_event;

/* Begins an event, with the fields of SGI_HAS_CALL. */
void sgi_call_event_begin(sgi_call_event *made, const sgi_op *op, sgi_event_id id);
/* Reports an event that has only these fields, if somebody wants it. */
void sgi_call_event_report(const sgi_op *op, sgi_event_id id);

/* Reports an event that has these fields and how the call ended. */
void sgi_call_event_report_status(const sgi_op *op, sgi_event_id id);
/* Reports that the handler of the call starts, for the first time or again. */
void sgi_call_event_report_start(const segue_call *call);
/* Reports that the call has ended, this time after its handler was started. */
void sgi_call_event_report_end(const segue_call *call, int64_t took_ms);
/* Notes that the handler has appended entries, which can be segments. Segments are
 * reported together, at most once in event_batch_ms. */
void sgi_call_event_note_segments(segue_call *call);
/* Reports a question to the client. question: its method. status: NULL = it is asked. */
void sgi_call_event_report_question(const sgi_op *op, const char *question,
                                    const char *status);
/* Notes that entries of the call have become durable. While the handler runs, they are
 * reported together, at most once in event_batch_ms. */
void sgi_call_event_note_stored(sgi_op *op, uint64_t entries, uint64_t took_us);
/* Reports that a session of the server has begun or ended. */
void sgi_session_event_report(const segue_server *server, sgi_event_id id);
/* Counts and reports that a client has come back for the rest of the call. */
void sgi_call_event_report_resumed(const sgi_op *op);

#endif
