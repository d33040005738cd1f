/* The kinds of events that a binding passes to its language. The files _segue.pyi
 * (Python) and constants.ts (Node) say which values each event has. */
#ifndef SGB_EVENTS_H
#define SGB_EVENTS_H

enum sgb_event {
    SGB_CALLED = 0,
    SGB_COMPLETION,
    SGB_CANCEL,
    SGB_DRAIN,
    SGB_INPUT,
    SGB_IDLE,
    SGB_OPEN,
    SGB_CLOSED,
    SGB_NOTIFICATION,
    SGB_SEGMENTS,
    SGB_PROGRESS,
    SGB_LOG,
    SGB_QUESTION,
    SGB_BECAME_TASK,
    SGB_STATUS,
    SGB_COMPLETE,
    SGB_STDERR,
    SGB_AUTHORIZE,
    SGB_RUNTIME_LOG,
    SGB_EXCEPTION,
    SGB_TRANSPORT_START,
    SGB_TRANSPORT_SEND,
    SGB_TRANSPORT_CLOSE,
    SGB_TRANSPORT_PAUSE,
    SGB_TRANSPORT_REOPEN,
    SGB_TRANSPORT_FREE,
    SGB_RECONNECT,
    SGB_CALLED_NOW,
    SGB_BECAME_RESUMABLE,
    SGB_ANSWER,
    SGB_ANSWER_ROOM,
    SGB_ANSWER_END,
    SGB_CLIENT_OPEN,
    SGB_CLIENT_CLOSED,
    SGB_RUNTIME_EVENT,
    SGB_EVENTS
};

/* The names of the events, which are the same in Python and JavaScript. The index is the
 * kind of event. */
extern const char *const sgb_event_names[SGB_EVENTS];

#endif
