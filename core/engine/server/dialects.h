/* The server's side of the dialects. A dialect is one way to show an operation on the
 * wire; comments name dialects by the letters of engine/negotiate.h. Each dialect is one
 * row: a struct of functions. The server calls these functions at the moments that this
 * file names, and has no other code for dialects. engine/negotiate.c decides which
 * dialects a request may use.
 *
 * A dialect reads the record of an operation, the log and a cursor. A dialect changes an
 * operation only by the functions of task.h. A function of a row that is NULL is not
 * called. */
#ifndef SGI_SRV_DIALECTS_H
#define SGI_SRV_DIALECTS_H

#include "engine/server/peer.h"

typedef struct sgi_call_request sgi_call_request;
typedef struct sgi_lasting_call_ops sgi_lasting_call_ops;
struct sgi_pieces_ops;

/* The kinds of answer to a client that asks to cancel a task. */
typedef enum sgi_cancel_form {
    /* the answer says whether the task was cancelled */
    SGI_CANCEL_OUTCOME = 0,
    SGI_CANCEL_STATE, /* the answer describes the task; the task may continue */
    /* the answer only confirms that the request has arrived; the task may continue */
    SGI_CANCEL_ACKNOWLEDGED
} sgi_cancel_form;

struct sgi_srv_dialect {
    const char *name; /* name of the dialect in stored records */
    uint32_t bit;     /* the sgi_dialect_bit of the dialect */
    bool is_modern;   /* the tasks of the dialect belong to 2026-07-28 */

    /* ---- capabilities ---- */

    /* The protocol version that exists only with this dialect. A handshake can choose
     * this version when the dialect is switched on. SGI_VERSION_UNKNOWN = the dialect has
     * no version of its own. */
    sgi_version version;
    /* Reads the capabilities that the client declares in initialize. Called when client
     * and server have agreed on the version. */
    void (*read_capabilities)(sgi_handshake *handshake, sgi_json capabilities);
    /* Writes the dialect's members of the server's capabilities, for the answer to
     * initialize. */
    void (*write_capabilities)(sgi_jw *w, const sgi_inbound *in);
    /* name of the dialect under capabilities.extensions; NULL = the dialect is not listed
     * there */
    const char *extension;
    /* Returns the name of the dialect under capabilities.experimental; NULL = the dialect
     * is not listed there. */
    const char *(*experiment)(const segue_server *server);
    /* Returns the capabilities (sgi_cap) that each client of this version is assumed to
     * have. */
    uint32_t (*given_caps)(const sgi_peer *peer, sgi_version version);

    /* ---- methods ---- */

    /* the methods of the dialect, up to an entry with a NULL name; NULL = the dialect has
     * no methods */
    const sgi_method *methods;
    /* True when the peer may use the methods of the dialect in this protocol version. */
    bool (*serves)(const sgi_peer *peer, sgi_version version);
    /* True when a client of another version may use this method. The client's own version
     * has a method of the same name, and the client has not declared the capability for
     * that method. */
    bool (*serves_older)(const sgi_inbound *in, sgi_str method);
    /* True when a request of this method may reuse the id of another request in
     * flight. */
    bool (*may_reuse_id)(const sgi_peer *peer, sgi_str method);

    /* ---- a tool in a list ---- */

    /* Returns execution.taskSupport (JSON) for the description of a tool that may or must
     * run as a task. NULL = the description gets no member execution.taskSupport. policy:
     * the tool's segue_task_policy. */
    const char *(*task_support)(const sgi_inbound *in, int32_t policy);
    /* True when a list for this client marks each tool whose results grow. */
    bool (*hints)(const sgi_inbound *in);

    /* True when clients of the dialect may be unable to merge a segment into an earlier
     * block. The server then makes a separate block from every segment. */
    bool (*keeps_segments_apart)(const segue_server *server);

    /* ---- a call ---- */

    /* Reads the dialect's members of the params of a call. Returns false when the call is
     * refused; the error has then been sent. */
    bool (*read_call)(const sgi_inbound *in, sgi_call_request *request);
    /* Returns the declarations of the client in this request (a set of sgi_declared_bit),
     * and fills the dialect's members of `request`. request is NULL when the request is
     * not a call. Dialects with pieces fill no members. */
    uint32_t (*says)(const sgi_inbound *in, sgi_call_request *request);
    /* True when a call for which the dialect was negotiated also meets the further
     * conditions of the dialect. NULL = the dialect has no further conditions. */
    bool (*takes)(const sgi_inbound *in, const sgi_call_request *request);
    /* The functions of the dialect's lasting calls, whose clients can leave and come back
     * (lasting.h); NULL = the dialect has no lasting calls. */
    const sgi_lasting_call_ops *lasting;
    /* True when this call is a lasting call: its client can leave and come back. Called
     * before the server decides whether the call is a task. */
    bool (*lasts)(const sgi_inbound *in, const sgi_call_request *request);
    /* The form of the pieces in which the client of a plain call gets a growing result.
     * NULL = the dialect has no pieces. */
    const struct sgi_pieces_ops *pieces;

    /* ---- tasks ---- */

    /* Answers a tools/call with the task that the call has become. Closes the reply, now
     * or later. NULL = the dialect makes no tasks. */
    void (*created)(sgi_reply *reply, sgi_op *op);
    /* a call that asks for a task always gets a task and never the plain result */
    bool never_plain;
    /* True when a call that asks for a task is answered with its result, because the tool
     * never runs as a task. NULL = the tool's policy decides. */
    bool (*answers_at_once)(const sgi_call_request *request);
    /* True when segments of the call are sent while its handler runs. A call that ends in
     * its first turn (before on_call returns) sends no segments early. NULL = false. */
    bool (*streams)(const sgi_call_request *request);
    /* True when the server decides the form of the answer only at the end of the
     * handler's first turn (when on_call returns). NULL = false. */
    bool (*waits_for_turn)(const sgi_op *op);
    /* True when a call that asks for a task can begin as a plain call. If the result is
     * soon ready, the result is the answer. Called only for calls without an idempotency
     * key. NULL = the tool's policy decides. */
    bool (*begins_plain)(const sgi_op *op);
    /* True when a call that asks for a task is answered with its result if the result is
     * ready at once. The task exists even then. */
    bool (*tracks)(const sgi_op *op);
    /* Writes the members of a task into an open JSON object, as in the answer to
     * tasks/get. fold: the result of a completed task; NULL or unused for other tasks. */
    void (*write)(sgi_jw *w, const sgi_op *op, const sgi_fold *fold);
    /* Called when the client of a lasting call comes back and the call has become this
     * task meanwhile. Sends the missing messages on the reply and closes the reply. NULL
     * = lasting calls of the dialect never become tasks. */
    void (*returned)(sgi_reply *reply, sgi_op *op);
    bool is_watched; /* subscriptions/listen can name tasks of this dialect */
    /* the store keeps the events of the dialect's tasks for clients that read the events
     * later */
    bool retains;
    /* unit of the time to live of the dialect's tasks, in ms: each time to live is a
     * multiple of the unit; 0 = no unit */
    int64_t ttl_unit_ms;
    sgi_cancel_form cancel;
    /* Iterate over the replies of a task whose client is connected. `waiting` returns the
     * replies that wait for the result of the task. `reading` returns the replies on
     * which segments are sent. before: the previously returned reply; NULL = return the
     * first reply. */
    const sgi_reply *(*waiting)(const sgi_op *op, const sgi_reply *before);
    const sgi_reply *(*reading)(const sgi_op *op, const sgi_reply *before);
};

/* The rows of all dialects (engine/dialect/rows.def). NULL ends the list. */
extern const sgi_srv_dialect *const sgi_srv_dialects[];

/* Returns the dialect of this negotiated set that makes tasks, or NULL when no dialect of
 * the set makes tasks. */
const sgi_srv_dialect *sgi_srv_task_dialect_in_set(uint32_t set);
/* Returns the dialect in which this request can become a task, by the declarations of its
 * client. Returns NULL when the request cannot become a task. */
const sgi_srv_dialect *sgi_srv_task_dialect(const sgi_inbound *in);
/* True when the server makes tasks for clients of this version that ask for tasks. */
bool sgi_srv_makes_tasks(const segue_server *server, sgi_version version);
/* Returns the dialect that has this name in stored records, or NULL when no dialect has
 * the name. */
const sgi_srv_dialect *sgi_srv_dialect_named(sgi_str name);

static inline bool sgi_srv_is_modern(const sgi_srv_dialect *dialect)
{
    return dialect && dialect->is_modern;
}

/* True when a handshake can choose this version because its dialect is switched on. */
bool sgi_srv_has_version(const segue_server *server, sgi_version version);
void sgi_srv_read_capabilities(sgi_handshake *handshake, sgi_json capabilities);
void sgi_srv_write_capabilities(sgi_jw *w, const sgi_inbound *in);
/* Writes a member "<name>":{} for each extension into an open JSON object. */
void sgi_srv_write_extensions(sgi_jw *w, const segue_server *server);
void sgi_srv_write_experiments(sgi_jw *w, const segue_server *server);
uint32_t sgi_srv_assumed_caps(const sgi_peer *peer, sgi_version version);

/* Returns the method of this name that a dialect offers to the peer in this version.
 * Returns NULL when no dialect offers the method. */
const sgi_method *sgi_srv_find_method(const sgi_peer *peer, sgi_version version,
                                      sgi_str name);
const sgi_method *sgi_srv_find_old_method(const sgi_inbound *in, sgi_str name);
bool sgi_srv_may_reuse_id(const sgi_peer *peer, sgi_str method);

const char *sgi_srv_task_support(const sgi_inbound *in, int32_t policy);
bool sgi_srv_hints_growing_results(const sgi_inbound *in);
bool sgi_srv_keeps_segments_apart(const segue_server *server);

bool sgi_srv_read_call(const sgi_inbound *in, sgi_call_request *request);
/* Returns the declarations of the client in this request to the dialects in `set` (a set
 * of sgi_declared_bit). */
uint32_t sgi_srv_read_declared(const sgi_inbound *in, sgi_call_request *request,
                               uint32_t set);
/* Returns the subset of the dialects in `set` whose further conditions this call
 * meets. */
uint32_t sgi_srv_usable_dialects(const sgi_inbound *in, const sgi_call_request *request,
                                 uint32_t set);
/* If this request makes a lasting call (its client can leave and come back), returns the
 * functions for it. Otherwise returns NULL. */
const sgi_lasting_call_ops *sgi_srv_lasting_call_ops(const sgi_inbound *in,
                                                     const sgi_call_request *request,
                                                     uint32_t set);
/* sgi_srv_dialects_with_pieces returns the set of all dialects that have pieces.
 * sgi_srv_pieces_ops returns the functions for the pieces of the last dialect in `set`
 * that has pieces; NULL = no dialect in `set` has pieces. */
uint32_t sgi_srv_dialects_with_pieces(void);
const struct sgi_pieces_ops *sgi_srv_pieces_ops(uint32_t set);
/* Returns the form of the pieces that the client of a lasting call gets on the reply that
 * carries its messages (the channel). Returns NULL when no dialect has such pieces. */
const struct sgi_pieces_ops *sgi_srv_lasting_pieces_ops(void);

bool sgi_srv_answers_at_once(const sgi_call_request *request);
bool sgi_srv_streams_segments(const sgi_call_request *request);
bool sgi_srv_answers_after_turn(const sgi_op *op);
bool sgi_srv_keeps_task_beside_result(const sgi_op *op);
const sgi_reply *sgi_srv_find_waiting_reply(const sgi_op *op, const sgi_reply *before);
const sgi_reply *sgi_srv_find_reading_reply(const sgi_op *op, const sgi_reply *before);

#endif
