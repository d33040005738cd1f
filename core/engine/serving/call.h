/* segue_call: the handler's end of an operation. It emits, asks and finishes, and knows
 * no dialect and no connection (R-C-13). */
#ifndef SGI_CALL_H
#define SGI_CALL_H

#include "engine/content.h"
#include "engine/serving/peer.h"

/* A text handed out by segue_call_argument_text; lives as long as the call. */
typedef struct sgi_decoded {
    TAILQ_ENTRY(sgi_decoded) link;
    size_t len;
    char text[];
} sgi_decoded;

struct segue_call {
    sgi_handle handle;
    int32_t refs;                /* the handler's hold, the operation, the ready queue */
    sgi_op *op;                  /* counted */
    LIST_ENTRY(segue_call) link; /* all of a server */
    sgi_ready ready;
    bool held; /* the handler has the handle and has not freed it */
    bool invoke_due;
    bool turned;     /* its first turn is over: who waits for that has been told */
    bool holds_turn; /* the handler runs after its callback has returned */
    sgi_timer turn;  /* holds_turn: how long that may be */
    bool watched;
    bool cancelled;
    bool cancel_due;
    bool wants_drain;
    bool drain_due;
    bool resumed;    /* a run after a restart */
    bool lost;       /* another server runs the operation by now */
    bool is_closing; /* its end is written, and is to be checked (tool_check.c) */
    struct sgi_entry_list closing; /* ... it is this, until it has been */
    bool check_due;
    uint64_t resumed_segment;
    void *resumed_data; /* the checkpoint as it was found */
    size_t resumed_len;
    segue_call_events events;
    TAILQ_HEAD(, sgi_decoded) decoded;
};

/* Makes the call of an operation and queues its handler. */
segue_status sgi_call_start(sgi_op *op, bool again);
/* The operation became a task while it ran: its request is answered with the task. */
void sgi_call_became_task(segue_call *call);
/* Asks the handler to stop: the operation was cancelled, has expired or was lost. */
void sgi_call_cancel(segue_call *call);
/* Another server runs the operation: nothing more of this run is heard. */
void sgi_call_lose(segue_call *call);
/* The log became durable: producers may go on, answers may be delivered. */
void sgi_call_progressed(segue_call *call);
/* Delivers what is due, then asks the client what is open. */
void sgi_call_look(segue_call *call);
/* The runtime goes away: the last callbacks of the call are due, whoever holds it. */
void sgi_call_die(segue_call *call);
/* The operation is done with the call. */
void sgi_call_let_go(segue_call *call);

/* For its handler: nothing more can be said. */
static inline bool sgi_call_is_over(const segue_call *call)
{
    return call->is_closing || call->lost || sgi_op_has_ended(call->op);
}

/* SEGUE_E_TERMINAL, with the reason. */
segue_status sgi_call_over(const segue_call *call);

/* The first turn goes on after on_call has returned: until its end is told, the call is
 * over or asks, or first_turn_ms have passed. SEGUE_E_STATE when no answer waits for the
 * turn. */
segue_status sgi_call_hold_turn(segue_call *call);
void sgi_call_end_turn(segue_call *call);

/* Appends the last entries, which are taken. */
segue_status sgi_call_end(segue_call *call, struct sgi_entry_list *list);
/* Takes them too, and checks them first. */
void sgi_call_close_later(segue_call *call, struct sgi_entry_list *list);

segue_status sgi_call_watch(segue_call *call, const segue_call_events *events);
segue_status sgi_call_meta(const segue_call *call, const char *key, sgi_json *value);
segue_status sgi_call_argument(const segue_call *call, const char *name, sgi_json *value);
segue_status sgi_call_argument_text(segue_call *call, const char *name, sgi_str *text);
segue_status sgi_call_send(segue_call *call, const segue_content *content);
segue_status sgi_call_send_text(segue_call *call, sgi_str text);
segue_status sgi_call_extend_text(segue_call *call, int64_t index, sgi_str text);
segue_status sgi_call_replace(segue_call *call);
segue_status sgi_call_set_field(segue_call *call, const char *name, const char *json,
                                size_t len);
segue_status sgi_call_set_completion(segue_call *call, const char *const *values,
                                     size_t count, int64_t total, bool has_more);
segue_status sgi_call_progress(segue_call *call, double progress, double total,
                               const char *message);
segue_status sgi_call_log(segue_call *call, const char *level, const char *json,
                          size_t len);
segue_status sgi_call_hang_up(segue_call *call, int64_t retry_ms);
segue_status sgi_call_set_status(segue_call *call, const char *message);
segue_status sgi_call_require_input(segue_call *call, const char *key, const char *method,
                                    const char *params, size_t len,
                                    segue_input_fn on_input, void *user,
                                    segue_free_fn free_user);
segue_status sgi_call_defer(segue_call *call, int64_t ttl_ms);
segue_status sgi_call_checkpoint(segue_call *call, const void *data, size_t len);
segue_status sgi_call_complete(segue_call *call, const segue_content *content);
segue_status sgi_call_fail(segue_call *call, int32_t code, const char *message,
                           const char *data, size_t len);
segue_status sgi_call_resumed(const segue_call *call, uint64_t *last_segment,
                              const void **data, size_t *len);
void sgi_call_free(segue_call *call);

#endif
