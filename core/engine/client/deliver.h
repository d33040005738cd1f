/* The events of a request for the application: segments, progress, log messages, states
 * and questions. The application gets the events in the order in which they came
 * (deliver.c). */
#ifndef SGI_DELIVER_H
#define SGI_DELIVER_H

#include "engine/client/result.h"
#include "engine/engine.h"

/* The kinds of records in the inbox. A record is an sgi_inbox_record_head followed by
 * bytes. The comment of each kind names the members of the sgi_inbox_record_head that the
 * kind uses, and then describes the bytes. */
typedef enum sgi_record_kind {
    SGI_RECORD_TASK = 1, /* no members; the bytes are the id of the task */
    /* number, event; the bytes are the JSON text of the content block */
    SGI_RECORD_SEGMENT,
    /* progress, total; the bytes are the text of the progress message, which may be
     * empty */
    SGI_RECORD_PROGRESS,
    SGI_RECORD_LOG, /* no members; the bytes are the JSON params of the log message */
    /* number: 1 = there is a message, 0 = there is no message; the bytes are: status NUL
     * message */
    SGI_RECORD_STATUS,
    SGI_RECORD_RESUMABLE,
    /* no members; the bytes are the question: key NUL method NUL params */
    SGI_RECORD_INPUT
} sgi_record_kind;

typedef struct sgi_inbox_record_head {
    int32_t kind;
    /* number of bytes of the record after its sgi_inbox_record_head, without the final
     * NUL */
    uint32_t len;
    uint64_t number;
    /* 1 + the number of the stream event that brought the record; 0 = the stream event
     * had no number */
    uint64_t event;
    /* for a segment: number up to which all segments are delivered after the delivery of
     * this segment */
    uint64_t covered;
    uint64_t index; /* for a segment: index of its block in the result's list */
    /* for a segment: number of segments that are void when this segment is delivered */
    uint64_t voided;
    /* true when this segment replaces the segments that were delivered earlier */
    bool replaces;
    double progress;
    double total;
} sgi_inbox_record_head;

/* The records that wait for the application, and how far the delivery has come. */
typedef struct sgi_delivery {
    sgi_buf inbox;
    sgi_buf taken; /* the records that the present delivery reads; taken from `inbox` */
    size_t taken_at;
    /* number of segments that the application still takes; -1 = no limit */
    int64_t credit;
    /* 1 + the number of the stream event that brought the last segment whose callback has
     * begun; 0 = there is no such event */
    uint64_t event;
    /* number up to which all segments were delivered; 0 = no segment was delivered */
    uint64_t segment;
    /* number of segments that were reported to the application as void */
    uint64_t voided;
    uint64_t dropped;
    uint64_t holes; /* number of pieces of the result that did not arrive */
    /* true while the inbox is full; the session then reads no input until callbacks have
     * made room */
    bool behind;
} sgi_delivery;

/* The numbers of a request's segments. */
typedef struct sgi_segment_numbering {
    uint64_t next;   /* number that the next segment gets */
    uint64_t voided; /* number of segments that the last replacement made void */
    /* number of segments that were already void when the last replacement came */
    uint64_t void_before;
    /* true when the next segment replaces the earlier ones and the application does not
     * know of the replacement yet */
    bool replace_due;
    /* true when the result says that some of its segments continue the text of earlier
     * segments */
    bool joined;
} sgi_segment_numbering;

/* Appends a record to the inbox. When out of memory, drops the record and returns
 * false. */
bool sgi_inbox_add_record(segue_request *request, const sgi_inbox_record_head *head,
                          sgi_str bytes);
void sgi_deliver_segment(segue_request *request, uint64_t number, uint64_t event,
                         sgi_json block);
/* Delivers a segment that may come before segments with lower numbers. covered: all
 * segments up to this number have arrived. */
void sgi_deliver_numbered_segment(segue_request *request, uint64_t number,
                                  uint64_t covered, sgi_json block);
/* Delivers a segment whose block has a known index in the result's list. */
void sgi_deliver_indexed_segment(segue_request *request, uint64_t number, uint64_t event,
                                 uint64_t index, sgi_json block);
/* Reports to the application that the segments up to this number are not part of the
 * result. */
void sgi_deliver_void_segments(segue_request *request, uint64_t number);
/* Reports to the application which segments are void according to _meta of the whole
 * result: segments that were replaced, and segments whose text is continued by later
 * segments. */
void sgi_deliver_void_segments_of_result(segue_request *request, sgi_json meta);
/* Delivers the blocks of a whole result that were not delivered as segments. */
void sgi_deliver_remaining_blocks(segue_request *request, const sgi_result *result);
/* Returns the number of bytes that wait to be delivered. */
size_t sgi_deliver_waiting_bytes(const segue_request *request);
bool sgi_inbox_is_full(const segue_request *request);
/* Stops the source of the segments, because the inbox is full. There are three cases:
 *
 * - A plain call over HTTP: its exchange is not read.
 *
 * - A request with credit left: the session reads no input until the callbacks have run.
 * The callbacks soon empty the inbox.
 *
 * - A request without credit: the server is asked to stop the stream (follower->pause),
 * because the application may give credit only much later. */
void sgi_deliver_stop_input(segue_request *request);
int32_t sgi_deliver_run_callbacks(sgi_ready_object *ready, int32_t budget);

struct segue_segment {
    /* what the application reads of the segment; view.type is NULL until the first
     * read */
    segue_segment_view view;
    /* the decoded type of the block; set when the application reads the segment for the
     * first time */
    sgi_buf type;
    sgi_buf text;
};

/* Some segments of the records that the application reads now, and the one that it took
 * last. */
struct segue_segment_batch {
    const char *at;
    const char *end;
    segue_segment segment;
};

/* Returns whether the application wants the segments. */
bool sgi_deliver_has_reader(const segue_request *request);
/* Moves the segment of the batch to the next record. Returns NULL after the last one. */
const segue_segment *sgi_segment_batch_next(segue_segment_batch *batch);

#endif
