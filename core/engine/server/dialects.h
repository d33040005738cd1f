/* The server's side of the dialects. A dialect is one way to represent an operation on
 * the wire; comments name dialects by letters (engine/negotiate.h). Each dialect is a
 * row, a struct of functions. The server calls the functions at the moments that are
 * named here, and has no other code for dialects. engine/negotiate.c decides which
 * dialects a request may use.
 *
 * A dialect reads the record, the log and a cursor. It changes an operation only by the
 * functions of task.h. A function that is NULL is skipped. */
#ifndef SGI_SRV_DIALECTS_H
#define SGI_SRV_DIALECTS_H

#include "engine/server/peer.h"

typedef struct sgi_call_request sgi_call_request;
typedef struct sgi_lasting_form sgi_lasting_form;
struct sgi_pieces_form;

/* What the server answers to a client that asks to cancel a task. */
typedef enum sgi_cancel_form {
    /* the answer says whether the task was cancelled */
    SGI_CANCEL_OUTCOME = 0,
    SGI_CANCEL_STATE, /* the answer describes the task, which may continue */
    /* the answer says that the request has arrived; the task may continue */
    SGI_CANCEL_ACKNOWLEDGED
} sgi_cancel_form;

struct sgi_srv_dialect {
    const char *name; /* name of the dialect in stored records */
    uint32_t bit;     /* the sgi_dialect_bit of the dialect */
    bool is_modern;   /* the tasks of the dialect belong to 2026-07-28 */

    /* ---- capabilities ---- */

    /* The protocol version that exists only with this dialect; SGI_VERSION_UNKNOWN =
     * none. A handshake can choose this version when the dialect is switched on. */
    sgi_version version;
    /* For initialize: reads the capabilities that the client declares. Called when the
     * version is agreed on. */
    void (*read_capabilities)(sgi_handshake *handshake, sgi_json capabilities);
    /* For initialize: writes members of the server's capabilities. */
    void (*write_capabilities)(sgi_jw *w, const sgi_inbound *in);
    /* name of the dialect under capabilities.extensions; NULL = none */
    const char *extension;
    /* Returns the name of the dialect under capabilities.experimental; NULL = none. */
    const char *(*experiment)(const segue_server *server);
    /* Returns the capabilities (sgi_cap) that each client of this version is assumed to
     * have. */
    uint32_t (*given_caps)(const sgi_peer *peer, sgi_version version);

    /* ---- methods ---- */

    /* the methods of the dialect; a NULL name ends the list; NULL = no methods */
    const sgi_method *methods;
    /* True when the peer may use the dialect's methods in this version. */
    bool (*serves)(const sgi_peer *peer, sgi_version version);
    /* True when a client of another version may use this method, because it has not
     * declared the capability for its own version's method of the same name. */
    bool (*serves_older)(const sgi_inbound *in, sgi_str method);
    /* True when a request of this method may reuse the id of another request in
     * flight. */
    bool (*may_reuse_id)(const sgi_peer *peer, sgi_str method);

    /* ---- a tool in a list ---- */

    /* Returns execution.taskSupport (JSON) for the description of a tool that may or must
     * run as a task; NULL = the description gets no such member. policy: the tool's
     * segue_task_policy. */
    const char *(*task_support)(const sgi_inbound *in, int32_t policy);
    /* True when lists for this client contain a hint at each tool whose results grow. */
    bool (*hints)(const sgi_inbound *in);

    /* True when clients of the dialect may not know how to merge a segment into an
     * earlier block. The server then makes a block of its own from every segment. */
    bool (*keeps_segments_apart)(const segue_server *server);

    /* ---- a call ---- */

    /* Reads the dialect's members of the params of a call. Returns false when the call
     * was refused. */
    bool (*read_call)(const sgi_inbound *in, sgi_call_request *request);
    /* Returns what the client declares with this request (sgi_declared_bit), and fills
     * the dialect's members of `request`. request is NULL when the request is not a call.
     * Dialects with pieces fill no members. */
    uint32_t (*says)(const sgi_inbound *in, sgi_call_request *request);
    /* True when a call for which the dialect was negotiated meets the dialect's other
     * conditions. NULL = there are no others. */
    bool (*takes)(const sgi_inbound *in, const sgi_call_request *request);
    /* The functions of the dialect's lasting calls (lasting.h); NULL = the dialect has no
     * lasting calls. */
    const sgi_lasting_form *lasting;
    /* True when this call is a lasting call. Called before it is decided whether the call
     * is a task. */
    bool (*lasts)(const sgi_inbound *in, const sgi_call_request *request);
    /* The form in which the client of a plain call gets the result while it grows; NULL =
     * the dialect has no pieces. */
    const struct sgi_pieces_form *pieces;

    /* ---- tasks ---- */

    /* Answers a tools/call with the task that the call has become. Closes the reply now
     * or later. NULL = the dialect makes no tasks. */
    void (*created)(sgi_reply *reply, sgi_op *op);
    /* a call that asks for a task always gets a task, never the plain result */
    bool never_plain;
    /* True when a call that asks for a task is answered with its result, because its tool
     * never makes tasks. NULL = the tool's policy decides. */
    bool (*answers_at_once)(const sgi_call_request *request);
    /* True when the segments of the call are sent while its handler runs, unless the call
     * ends in its first turn. NULL = false. */
    bool (*streams)(const sgi_call_request *request);
    /* True when the form of the answer is decided at the end of the handler's first turn.
     * NULL = false. */
    bool (*waits_for_turn)(const sgi_op *op);
    /* True when a call that asks for a task may begin as a plain call: if its result is
     * ready soon, the result is the answer. NULL = the tool's policy decides. Called only
     * for calls without a key. */
    bool (*begins_plain)(const sgi_op *op);
    /* True when a call that asks for a task gets the result itself as its answer if the
     * result is ready at once, and the task exists all the same. */
    bool (*tracks)(const sgi_op *op);
    /* Writes the members of a task into an open object, as in the answer to tasks/get.
     * fold: the result of a completed task; not used for other tasks. */
    void (*write)(sgi_jw *w, const sgi_op *op, const sgi_fold *fold);
    /* Called when the client of a lasting call comes back after the call has become this
     * task: sends the missing messages on the reply and closes the reply. NULL = a
     * lasting call of the dialect never becomes a task. */
    void (*returned)(sgi_reply *reply, sgi_op *op);
    bool is_watched; /* subscriptions/listen can name tasks of this dialect */
    /* the events of the dialect's tasks are stored for clients that read them later */
    bool retains;
    /* unit of the ttl of the dialect's tasks, in ms: each ttl is a multiple; 0 = no
     * unit */
    int64_t ttl_unit_ms;
    sgi_cancel_form cancel;
    /* Iterate over the replies whose client is connected. waiting: the replies that wait
     * for the result of the task. reading: the replies on which the segments are sent.
     * before: the previous reply; NULL = return the first one. */
    const sgi_reply *(*waiting)(const sgi_op *op, const sgi_reply *before);
    const sgi_reply *(*reading)(const sgi_op *op, const sgi_reply *before);
};

/* All rows, with NULL at the end (engine/dialect/rows.def). */
extern const sgi_srv_dialect *const sgi_srv_dialects[];

/* Returns the dialect in this negotiated set that makes tasks; NULL = none does. */
const sgi_srv_dialect *sgi_srv_task_dialect_in_set(uint32_t set);
/* Returns the dialect in which this request can become a task, given what its client
 * declares; NULL = it cannot become a task. */
const sgi_srv_dialect *sgi_srv_task_dialect(const sgi_inbound *in);
/* True when the server makes tasks for clients of this version, if they ask for tasks. */
bool sgi_srv_makes_tasks(const segue_server *server, sgi_version version);
/* Returns the dialect that has this name in stored records; NULL when there is none. */
const sgi_srv_dialect *sgi_srv_dialect_named(sgi_str name);

static inline bool sgi_srv_is_modern(const sgi_srv_dialect *dialect)
{
    return dialect && dialect->is_modern;
}

/* True when a handshake may choose this version. */
bool sgi_srv_has_version(const segue_server *server, sgi_version version);
void sgi_srv_read_capabilities(sgi_handshake *handshake, sgi_json capabilities);
void sgi_srv_write_capabilities(sgi_jw *w, const sgi_inbound *in);
/* Writes "<name>":{} of each extension into an open object. */
void sgi_srv_write_extensions(sgi_jw *w, const segue_server *server);
void sgi_srv_write_experiments(sgi_jw *w, const segue_server *server);
uint32_t sgi_srv_undeclared_caps(const sgi_peer *peer, sgi_version version);

/* Returns the method of this name, if a dialect offers it to the peer in this version;
 * NULL when none does. */
const sgi_method *sgi_srv_method(const sgi_peer *peer, sgi_version version, sgi_str name);
const sgi_method *sgi_srv_older_method(const sgi_inbound *in, sgi_str name);
bool sgi_srv_may_reuse_id(const sgi_peer *peer, sgi_str method);

const char *sgi_srv_task_support(const sgi_inbound *in, int32_t policy);
bool sgi_srv_hints_growing_results(const sgi_inbound *in);
bool sgi_srv_keeps_segments_apart(const segue_server *server);

bool sgi_srv_read_call(const sgi_inbound *in, sgi_call_request *request);
/* Returns what the client declares with this request to the dialects in `set`
 * (sgi_declared_bit). */
uint32_t sgi_srv_read_declared(const sgi_inbound *in, sgi_call_request *request,
                               uint32_t set);
/* Returns those dialects of `set` whose other conditions this call meets too. */
uint32_t sgi_srv_usable_dialects(const sgi_inbound *in, const sgi_call_request *request,
                                 uint32_t set);
/* Returns the functions for the lasting call that this request makes; NULL = the request
 * makes no lasting call. */
const sgi_lasting_form *sgi_srv_lasting_form(const sgi_inbound *in,
                                             const sgi_call_request *request,
                                             uint32_t set);
/* sgi_srv_all_with_pieces returns the set of all dialects that have pieces.
 * sgi_srv_pieces_form returns the form of the last of these dialects that is in `set`;
 * NULL = none is. */
uint32_t sgi_srv_all_with_pieces(void);
const struct sgi_pieces_form *sgi_srv_pieces_form(uint32_t set);
/* Returns the form of the pieces that are sent on the channel of a lasting call; NULL =
 * there is none. */
const struct sgi_pieces_form *sgi_srv_lasting_pieces(void);

bool sgi_srv_answers_at_once(const sgi_call_request *request);
bool sgi_srv_streams(const sgi_call_request *request);
bool sgi_srv_waits_for_turn(const sgi_op *op);
bool sgi_srv_tracks_task(const sgi_op *op);
const sgi_reply *sgi_srv_find_waiting_reply(const sgi_op *op, const sgi_reply *before);
const sgi_reply *sgi_srv_find_reading_reply(const sgi_op *op, const sgi_reply *before);

#endif
