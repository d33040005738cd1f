/* Segue, extension API: transports and stores of your own, and injected clock and
 * randomness for tests. Stable per minor version, not across minors. The conventions of
 * segue.h hold here too. */
#ifndef SEGUE_EXT_H
#define SEGUE_EXT_H

#include <segue/segue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Hooks ----------------------------------------------------------------------- */

/* Time and randomness of a runtime. With hooks set, timers fire when the injected
 * monotonic clock says so, as seen at the next segue_runtime_dispatch. */
struct segue_hooks {
    size_t struct_size;
    void *user;
    int64_t (*monotonic_ms)(void *user);
    int64_t (*wall_ms)(void *user); /* since 1970-01-01 UTC */
    /* Fills len bytes; 0 = success. */
    int32_t (*random)(void *user, void *bytes, size_t len);
};

/* ---- 2 Custom transport ------------------------------------------------------------ */

/* Carries bytes that are framed as stdio is: one JSON-RPC message per line. All functions
 * are called on the runtime's I/O thread, without a lock, one at a time; they count as
 * callbacks for what is refused in one. The handle is good until free is called. */
typedef struct segue_transport_vtable {
    size_t struct_size;
    /* The transport was attached: begin. May call feed and closed. */
    void (*start)(void *self, segue_transport *transport);
    /* Bytes to send. Returns how many were taken; fewer than len means "not now": call
     * segue_transport_writable when there is room again. */
    size_t (*send)(void *self, const char *bytes, size_t len);
    /* No more bytes will come; close, then call segue_transport_closed. */
    void (*close)(void *self);
    /* 1 = the library is ahead of its reader: stop feeding until 0 is said. Optional. */
    void (*pause)(void *self, int32_t paused);
    /* Connect again after a loss; 0 = trying. NULL = a loss is final. */
    int32_t (*reopen)(void *self);
    /* Last call. For a transport that was never attached: on the thread that frees it. */
    void (*free)(void *self);
} segue_transport_vtable;

/* Makes a transport of yours.
 *
 * vtable    copied. self: freed by vtable->free, once.
 * Returns   SEGUE_OK, SEGUE_E_INVALID when start, send or close is missing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_custom(segue_runtime *runtime,
                                              const segue_transport_vtable *vtable,
                                              void *self, segue_transport **out);

/* Hands over bytes that were received.
 *
 * bytes     copied. Taken whole or not at all; any cut will do, also inside a message.
 * Returns   SEGUE_OK, SEGUE_E_CLOSED, SEGUE_E_STATE before it is attached,
 *           SEGUE_E_WOULD_BLOCK when more than max_queue_bytes (1 MiB) wait already:
 *           pause(0) tells when to go on.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_feed(segue_transport *transport, const char *bytes,
                                            size_t len);

/* Tells that send can take bytes again. May be called inside send.
 *
 * Returns   SEGUE_OK, SEGUE_E_CLOSED, SEGUE_E_STATE before it is attached.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_writable(segue_transport *transport);

/* Tells that the connection has ended. What was fed before is still read.
 *
 * Returns   SEGUE_OK, SEGUE_E_CLOSED when it was said before, SEGUE_E_STATE before it is
 *           attached.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_closed(segue_transport *transport);

/* ---- 3 Custom store ---------------------------------------------------------------- */

#define SEGUE_STORE_ID_SIZE 16
#define SEGUE_STORE_HASH_SIZE 32

/* What stays the same of an operation, and two values that change. Views: copy to
 * keep. */
typedef struct segue_store_record {
    uint8_t id[SEGUE_STORE_ID_SIZE]; /* internal, never on the wire */
    const char *task_id;             /* unique; NUL-terminated */
    int32_t has_key;                 /* 1 = idempotency_key is set; unique when set */
    uint8_t idempotency_key[SEGUE_STORE_HASH_SIZE];
    uint8_t principal[SEGUE_STORE_HASH_SIZE];
    int32_t ended;      /* enum segue_store_ended */
    int64_t created_ms; /* wall clock */
    int64_t purge_ms;   /* wall clock; may be deleted from then on; INT64_MAX = never */
    const char *data;   /* opaque to the store */
    size_t data_len;
} segue_store_record;

/* One entry of an operation's log. Entries never change. */
typedef struct segue_store_entry {
    uint64_t seq;     /* 1, 2, 3, ... per operation; it stays when others are dropped */
    uint64_t segment; /* its number, or the last number that it voids; 0 = none */
    uint64_t event;   /* event number + 1, 0 = none */
    int32_t kind;
    int64_t at_ms; /* wall clock */
    const char *data;
    size_t data_len;
} segue_store_entry;

enum segue_store_ended {
    SEGUE_STORE_LIVE = 0,
    SEGUE_STORE_ENDED = 1, /* the final entry is in the log */
    SEGUE_STORE_TORN = 2   /* in a claim: alive, but its newest entries may be lost, which
                              clients have perhaps seen. It is ended, and not run again */
};

enum segue_store_write_kind {
    SEGUE_STORE_CREATE = 1,  /* record */
    SEGUE_STORE_APPEND = 2,  /* id, entry */
    SEGUE_STORE_END = 3,     /* id, purge_ms: the operation has ended. entry.seq: 0, or
                                the number of the first entry in this commit: a hole may
                                be before it, since the store has lost something */
    SEGUE_STORE_DELETE = 4,  /* id */
    SEGUE_STORE_RELEASE = 5, /* id: its server goes, unended; the next claim finds it */
    SEGUE_STORE_DROP = 6,    /* id, entry.kind, entry.seq: nobody needs entries of that
                                kind up to that number any more; never the last of the
                                log. A store may keep them */
    SEGUE_STORE_TAKEN = 7    /* id, entry.seq: letters up to that number have been dealt
                                with; what they led to is in this commit or before it.
                                entry.event: how far the log goes, this commit included;
                                a store that has less of it says SEGUE_E_STATE */
};

typedef struct segue_store_write {
    int32_t kind;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    const segue_store_record *record;
    segue_store_entry entry;
    int64_t purge_ms;
} segue_store_write;

/* Receives one record; return 0 to go on, 1 to stop. */
typedef int32_t (*segue_store_record_fn)(void *user, const segue_store_record *record);

/* Receives one entry; return 0 to go on, 1 to stop. */
typedef int32_t (*segue_store_entry_fn)(void *user, const segue_store_entry *entry);

/* What others did to operations. A store that several servers share tells it: each
 * operation has one owner, the store instance that created or claimed it last, which
 * alone may write to it. Others follow its log, and send the owner letters. */
enum segue_store_news_kind {
    SEGUE_STORE_GREW = 1,    /* id: somebody else's commit wrote to it, or it is gone */
    SEGUE_STORE_LETTER = 2,  /* id, number, data: for its owner, which this instance is */
    SEGUE_STORE_ORPHANS = 3, /* owners have gone: claim will find something */
    SEGUE_STORE_MISSED = 4,  /* news were lost: as if all that is followed had grown */
    SEGUE_STORE_DOUBT = 5    /* commits may be lost, or the lease has lapsed: who runs
                                operations says of each how far it is, by a TAKEN, and
                                is fenced from those that it has lost */
};

typedef struct segue_store_news {
    int32_t kind;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    uint64_t number; /* of a letter: higher than of any before it to that operation */
    const char *data;
    size_t data_len;
} segue_store_news;

/* Receives one piece of news; return 0 to go on, 1 to stop: that piece is told again. */
typedef int32_t (*segue_store_news_fn)(void *user, const segue_store_news *news);

/* What a store says of itself; -1 = it does not know. */
typedef struct segue_store_stats {
    size_t struct_size;
    int64_t operations; /* in it */
    int64_t bytes;      /* that it occupies */
    int64_t evicted; /* operations that had to go before their time, for want of room */
    int64_t purged;  /* ... and that went in time; both since it was opened */
} segue_store_stats;

/* A store. Calls come one at a time. A blocking store is called on a thread of its own, a
 * non-blocking one under the library's lock: it must not call the library. */
typedef struct segue_store_vtable {
    size_t struct_size;
    /* 1 = calls may take their time. */
    int32_t blocking;
    /* 1 = owners have leases: other instances may take an operation over while this one
     * cannot reach the store, and the store fences whoever comes back. It needs the four
     * functions for news. A commit that fails with SEGUE_E_STORE is then repeated until
     * it answers anything else, one operation at a time, and no peer is told before that
     * an operation failed. The first try may have been applied all the same: a CREATE or
     * APPEND of what is there already, byte for byte, is fine while this instance owns
     * the operation.
     * 0 = an operation whose commit fails with SEGUE_E_STORE ends with an error. */
    int32_t leased;
    /* 1 = what it keeps ends with the process. */
    int32_t forgets;
    /* Applies all writes or none; they are durable when it returns SEGUE_OK.
     * SEGUE_E_EXISTS: a CREATE met a task id or idempotency key that is there.
     * SEGUE_E_STORE_FULL: no room now. SEGUE_E_STATE: an APPEND would repeat a number or
     * leave a hole. SEGUE_E_NOT_FOUND: an APPEND or END to what is not there; a DELETE,
     * RELEASE, DROP or TAKEN of it is fine, and so is a RELEASE of what has ended or is
     * not owned. SEGUE_E_FENCED: an APPEND, END, DROP or TAKEN to what another instance
     * owns by now, or a CREATE of it once more, the answer to the first being lost. */
    segue_status (*commit)(void *self, const segue_store_write *writes, size_t count);
    /* Finds a record by task id, or by idempotency key when task_id is NULL, and hands it
     * to fn. SEGUE_E_NOT_FOUND when there is none. */
    segue_status (*find)(void *self, const char *task_id, const uint8_t *idempotency_key,
                         segue_store_record_fn fn, void *user);
    /* Hands over the entries of an operation with seq > after, in order. */
    segue_status (*read)(void *self, const uint8_t *id, uint64_t after,
                         segue_store_entry_fn fn, void *user);
    /* Hands over operations that have not ended and whose owner is gone, and makes this
     * store instance their owner. Each once: servers that share the handle claim in turn,
     * and what one of them was shown is its own until it lets it go. */
    segue_status (*claim)(void *self, segue_store_record_fn fn, void *user);
    /* Deletes what may be purged; *next_ms receives when to call again. Optional. */
    segue_status (*purge)(void *self, int64_t now_ms, int64_t *next_ms);
    /* Last call. */
    void (*free)(void *self);
    /* Hands over the operations of a principal, newest first: by created_ms, and those of
     * one moment by the bytes of their task id, both falling. Only what comes behind the
     * given pair, unless task_id is NULL. Optional: without it a server has no
     * tasks/list. */
    segue_status (*list)(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user);

    /* The rest is for a store that other processes write to as well: all four or none. */

    /* Sets what to call when there are news; from any thread, also from inside of other
     * functions of the store, without a lock of its own. NULL = nothing any more: it has
     * returned for the last time when this returns. Called outside of the order of the
     * other calls. */
    void (*set_bell)(void *self, void (*ring)(void *user), void *user);
    /* News tell from now on (1), or no more (0), that the log of the operation grows.
     * SEGUE_E_NOT_FOUND when it is gone. What was there before is not told: read after
     * follow has returned. When (0) fails, a server that closes does not ask for the
     * rest of what it followed; news of that are ignored, and (1) may come again. */
    segue_status (*follow)(void *self, const uint8_t *id, int32_t on);
    /* Leaves a letter for whoever owns the operation, now or after a claim, until TAKEN.
     * SEGUE_E_NOT_FOUND when it is gone, SEGUE_E_TERMINAL when it has ended,
     * SEGUE_E_LIMIT when too many wait for it (64). */
    segue_status (*post)(void *self, const uint8_t *id, const char *data, size_t len);
    /* Hands over what is new, letters in their order, each once while this instance owns
     * the operation (a claim tells those that wait anew). *within_ms receives when to ask
     * again without a bell; -1 = not at all. Also keeps this instance alive as an owner:
     * it is called that often. A leased store whose calls may take longer than a lease
     * keeps itself alive by a thread of its own. */
    segue_status (*news)(void *self, segue_store_news_fn fn, void *user,
                         int64_t *within_ms);

    /* Says how it is. Quick: asked after commits. Optional, for every store. */
    void (*stats)(void *self, segue_store_stats *stats);
} segue_store_vtable;

/* Makes a store of yours.
 *
 * vtable    copied. self: freed by vtable->free, once.
 * options   only the allocator is used; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_INVALID when commit, find, read or claim is missing, when
 *           some of the four functions for news are there and others not, or when it is
 *           leased and has none of them.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_store_custom(const segue_store_vtable *vtable, void *self,
                                          const segue_store_options *options,
                                          segue_store **out);

#ifdef __cplusplus
}
#endif

#endif
