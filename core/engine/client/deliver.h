/* The events of a request for the application: segments, progress, log messages, states
 * and questions. They are delivered in the order in which they came (deliver.c). */
#ifndef SGI_DELIVER_H
#define SGI_DELIVER_H

#include "engine/engine.h"

/* The inbox holds the records that have arrived and were not delivered yet. A record is
 * an sgi_inbox_head followed by bytes. The comments of this enum name the members of the
 * head that a kind of record uses, and describe the bytes. */
typedef enum sgi_record_kind {
    SGI_RECORD_TASK = 1, /* the bytes are the id of the task */
    SGI_RECORD_SEGMENT,  /* number, event; the bytes are the JSON block */
    /* progress, total; the bytes are the message, which may be empty */
    SGI_RECORD_PROGRESS,
    SGI_RECORD_LOG, /* the bytes are the JSON params of the log message */
    /* number is 1 if there is a message, else 0; the bytes are: status NUL message */
    SGI_RECORD_STATUS,
    SGI_RECORD_RESUMABLE,
    SGI_RECORD_INPUT /* the bytes are: key NUL method NUL params */
} sgi_record_kind;

typedef struct sgi_inbox_head {
    int32_t kind;
    uint32_t len; /* number of bytes behind the head, without the final NUL */
    uint64_t number;
    /* 1 + the number of the stream event that brought the record; 0 = the event had no
     * number */
    uint64_t event;
    /* number up to which all segments have been delivered once this segment is
     * delivered */
    uint64_t covered;
    uint64_t index; /* index of the block in the result's list */
    /* number of void segments at the time when this segment is delivered */
    uint64_t voided;
    bool replaces; /* this segment replaces the segments that were delivered earlier */
    double progress;
    double total;
} sgi_inbox_head;

/* The records that wait for the application, and the position that the delivery has
 * reached. */
typedef struct sgi_delivery {
    sgi_buf inbox;
    sgi_buf taken; /* the records that are being delivered */
    size_t taken_at;
    int64_t credit; /* number of segments that may still be delivered; -1 = no limit */
    /* 1 + the number of the event that brought the last segment whose callback has begun;
     * 0 = none */
    uint64_t event;
    uint64_t segment; /* number up to which all segments were delivered; 0 = none */
    /* number of segments that were reported to the application as void */
    uint64_t voided;
    uint64_t dropped;
    uint64_t holes; /* number of pieces of the result that did not arrive */
    /* The inbox is full, and the session reads no more input until callbacks have run. */
    bool behind;
} sgi_delivery;

/* How the segments of a request are numbered. */
typedef struct sgi_segment_numbering {
    uint64_t next;   /* number of the next segment */
    uint64_t voided; /* number of segments that the last replacement made void */
    /* number of segments that were void before the last replacement came */
    uint64_t void_before;
    /* the next segment replaces the earlier ones; the application does not know this
     * yet */
    bool replace_due;
    /* the result says that some of its segments continue the text of earlier ones */
    bool joined;
} sgi_segment_numbering;

/* Appends a record to the inbox. Returns false, and drops the record, when out of
 * memory. */
bool sgi_deliver(segue_request *request, const sgi_inbox_head *head, sgi_str bytes);
void sgi_deliver_segment(segue_request *request, uint64_t number, uint64_t event,
                         sgi_json block);
/* Delivers a segment, perhaps before segments with lower numbers. covered: all segments
 * up to this number have arrived. */
void sgi_deliver_numbered(segue_request *request, uint64_t number, uint64_t covered,
                          sgi_json block);
/* Delivers a segment whose index in the result's list is known. */
void sgi_deliver_piece(segue_request *request, uint64_t number, uint64_t event,
                       uint64_t index, sgi_json block);
/* Reports to the application that the segments up to this number are not part of the
 * result. */
void sgi_deliver_void(segue_request *request, uint64_t number);
/* Reports to the application which segments are void according to the whole result:
 * segments that were replaced, and segments whose text was continued by others. */
void sgi_deliver_void_of_result(segue_request *request, sgi_json result);
/* Delivers the blocks of a whole result that were not delivered as segments. */
void sgi_deliver_remaining_blocks(segue_request *request, sgi_json result);
/* Returns the number of bytes that wait to be delivered. */
size_t sgi_deliver_waiting_bytes(const segue_request *request);
bool sgi_deliver_is_full(const segue_request *request);
/* Stops the source of the segments, because the inbox is full. There are three cases:
 *
 * - A plain call over HTTP: its exchange is not read.
 *
 * - A request with credit left: the session reads no input until the callbacks have run,
 *   which soon empties the inbox.
 *
 * - A request without credit: the server is asked to stop the stream (follower->pause),
 *   because the application may give credit only much later. */
void sgi_deliver_stop_input(segue_request *request);
int32_t sgi_deliver_run(sgi_ready *ready, int32_t budget);

struct segue_segment {
    /* view.type is NULL until the application reads the segment for the first time */
    segue_segment_view view;
    /* the decoded type of the block; set when the application reads the segment for the
     * first time */
    sgi_buf type;
    sgi_buf text;
};

#endif
