/* The server's side of the dialects. A dialect is one way to represent an operation on
 * the wire; comments name it by a letter (engine/negotiate.h). Each dialect is a row, a
 * struct of functions. The server calls the rows at the moments that are named here, and
 * contains no other code for dialects. engine/negotiate.c says which dialect may be used
 * when.
 *
 * A dialect reads the record, the log and a cursor, and changes an operation only by the
 * functions of task.h. A NULL function is skipped. */
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

    /* The protocol version that only this dialect has; SGI_VERSION_UNKNOWN = none. A
     * handshake may agree on this version when the dialect is switched on. */
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
    /* Returns the capabilities (sgi_cap) that every client of this version has although
     * it does not declare them. */
    uint32_t (*given_caps)(const sgi_peer *peer, sgi_version version);

    /* ---- methods ---- */

    /* the methods of the dialect; a NULL name ends the list; NULL = no methods */
    const sgi_method *methods;
    /* True when the peer can use the dialect's methods in this version. */
    bool (*serves)(const sgi_peer *peer, sgi_version version);
    /* True when a client of another version may use this method, because the client lacks
     * the capability for the same method of its own version. */
    bool (*serves_older)(const sgi_inbound *in, sgi_str method);
    /* True when a request of this method may have the id of another request that is in
     * flight. */
    bool (*may_reuse_id)(const sgi_peer *peer, sgi_str method);

    /* ---- a tool in a list ---- */

    /* Returns execution.taskSupport (JSON) for a tool that may or must run as a task;
     * NULL = the tool gets no such member. policy: the tool's segue_task_policy. */
    const char *(*task_support)(const sgi_inbound *in, int32_t policy);
    /* True when, in a list for this client, a tool whose results grow gets a hint that
     * says so. */
    bool (*hints)(const sgi_inbound *in);

    /* True when clients of the dialect may be unable to merge a segment into an earlier
     * block. Every segment then stays a block of its own. */
    bool (*keeps_segments_apart)(const segue_server *server);

    /* ---- a call ---- */

    /* Reads the dialect's members of the params of a call. Returns false when the call
     * was refused. */
    bool (*read_call)(const sgi_inbound *in, sgi_call_request *request);
    /* Returns what the client declares with this request (sgi_declared_bit), and fills
     * the dialect's members of `request`. request NULL = the request is no call. Rows
     * with pieces fill nothing. */
    uint32_t (*says)(const sgi_inbound *in, sgi_call_request *request);
    /* True when a call for which the dialect was negotiated can really use it. NULL =
     * always. */
    bool (*takes)(const sgi_inbound *in, const sgi_call_request *request);
    /* The functions of the dialect's lasting calls (lasting.h); NULL = the dialect has no
     * lasting calls. */
    const sgi_lasting_form *lasting;
    /* True when this call is lasting. Called when it is decided whether the call is a
     * task. */
    bool (*lasts)(const sgi_inbound *in, const sgi_call_request *request);
    /* How the client of a plain call gets the result while it grows; NULL = the dialect
     * has no pieces. */
    const struct sgi_pieces_form *pieces;

    /* ---- tasks ---- */

    /* Answers a tools/call with the task that the call has become, and closes the reply
     * now or later. NULL = the dialect makes no tasks. */
    void (*created)(sgi_reply *reply, sgi_op *op);
    /* a call that asks for a task always gets a task, never the plain result */
    bool never_plain;
    /* True when a call may ask for a task although its tool is never a task: the call is
     * then answered with its result. NULL = the tool's policy decides. */
    bool (*answers_at_once)(const sgi_call_request *request);
    /* True when the segments of the call are sent while its handler runs, unless the call
     * ends at once. NULL = they are not. */
    bool (*streams)(const sgi_call_request *request);
    /* True when the answer of the call is chosen at the end of the handler's first turn.
     * NULL = it is not. */
    bool (*waits_for_turn)(const sgi_op *op);
    /* True when a call that asks for a task may begin as a plain call: if its result is
     * ready soon, the result is the answer. NULL = the tool's policy decides. Called only
     * for calls without a key. */
    bool (*begins_plain)(const sgi_op *op);
    /* True when the result is also the answer of a call that asks for a task, if the
     * result is ready at once. */
    bool (*tracks)(const sgi_op *op);
    /* Writes the members of a task into an open object, as in the answer to tasks/get.
     * fold: the result of a completed task; ignored for other tasks. */
    void (*write)(sgi_jw *w, const sgi_op *op, const sgi_fold *fold);
    /* Called when the client of a lasting call, which has become this task, comes back:
     * sends the missing messages on the reply and closes it. NULL = a lasting call of the
     * dialect never becomes a task. */
    void (*returned)(sgi_reply *reply, sgi_op *op);
    bool is_watched; /* subscriptions/listen can name tasks of this dialect */
    /* the events of the dialect's tasks are stored for clients that read them later */
    bool retains;
    /* the ttl of the dialect's tasks is a multiple of this number of ms; 0 = the ttl can
     * be any number */
    int64_t ttl_unit_ms;
    sgi_cancel_form cancel;
    /* Return a reply whose client is connected. waiting: a reply that waits for the
     * result of the task. reading: a reply on which the segments are sent. `before`: the
     * search begins after this reply; NULL = at the first. */
    const sgi_reply *(*waiting)(const sgi_op *op, const sgi_reply *before);
    const sgi_reply *(*reading)(const sgi_op *op, const sgi_reply *before);
};

/* All rows, ended by NULL (engine/dialect/rows.def). */
extern const sgi_srv_dialect *const sgi_srv_dialects[];

/* Returns the dialect of this negotiated set that makes tasks; NULL when none does. */
const sgi_srv_dialect *sgi_srv_task_dialect_in_set(uint32_t set);
/* Returns the dialect in which this request can become a task, by what its client
 * declares; NULL when it cannot. */
const sgi_srv_dialect *sgi_srv_task_dialect(const sgi_inbound *in);
/* True when the server makes tasks for clients of this version, if they ask for tasks. */
bool sgi_srv_makes_tasks(const segue_server *server, sgi_version version);
/* Returns the dialect that has this name in stored records; NULL when there is none. */
const sgi_srv_dialect *sgi_srv_dialect_named(sgi_str name);

static inline bool sgi_srv_is_modern(const sgi_srv_dialect *dialect)
{
    return dialect && dialect->is_modern;
}

/* True when a handshake may agree on this version. */
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
/* Returns what the client declares with this request to the dialects of the set
 * (sgi_declared_bit). */
uint32_t sgi_srv_read_declared(const sgi_inbound *in, sgi_call_request *request,
                               uint32_t set);
/* Returns the dialects of the set that can really be used for this call. */
uint32_t sgi_srv_usable_dialects(const sgi_inbound *in, const sgi_call_request *request,
                                 uint32_t set);
/* Returns the functions for the lasting call that this request makes; NULL = the call is
 * not lasting. */
const sgi_lasting_form *sgi_srv_lasting_form(const sgi_inbound *in,
                                             const sgi_call_request *request,
                                             uint32_t set);
/* sgi_srv_all_with_pieces returns the set of all dialects that have pieces.
 * sgi_srv_pieces_form returns the form of the last dialect with pieces in the set; NULL
 * when there is none. */
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
