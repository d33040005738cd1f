/* The events of a request that are delivered to the application, in the order in which
 * they came: segments, progress, log messages, states and questions (deliver.c). */
#ifndef SGI_DELIVER_H
#define SGI_DELIVER_H

#include "engine/engine.h"

/* The inbox holds what has arrived and was not yet delivered, as records. A record is an
 * sgi_inbox_head, followed by its bytes. The comments name the members of the head that a
 * kind uses, and the contents of the bytes. */
typedef enum sgi_record_kind {
    SGI_RECORD_TASK = 1, /* the bytes are the id of the task */
    SGI_RECORD_SEGMENT,  /* number, event; the bytes are the JSON block */
    /* progress, total; the bytes are the message, which may be empty */
    SGI_RECORD_PROGRESS,
    SGI_RECORD_LOG, /* the bytes are the JSON params of the log message */
    /* the bytes are: status NUL message; number is 1 if the status has a message, else
     * 0 */
    SGI_RECORD_STATUS,
    SGI_RECORD_RESUMABLE,
    SGI_RECORD_INPUT /* the bytes are: key NUL method NUL params */
} sgi_record_kind;

typedef struct sgi_inbox_head {
    int32_t kind;
    uint32_t len; /* number of bytes after the head, without the final NUL */
    uint64_t number;
    /* 1 + the number of the stream event that brought the record; 0 = no numbered
     * event */
    uint64_t event;
    /* when this segment is delivered, all segments up to this number have been
     * delivered */
    uint64_t covered;
    uint64_t index; /* index of the block in the result's list */
    /* number of void segments at the time when this segment is delivered */
    uint64_t voided;
    bool replaces; /* the segments delivered before this one are void */
    double progress;
    double total;
} sgi_inbox_head;

/* The records that wait to be delivered to the application, and the position that the
 * delivery has reached. */
typedef struct sgi_delivery {
    sgi_buf inbox;
    sgi_buf taken; /* the records that are being delivered */
    size_t taken_at;
    int64_t credit;   /* number of segments that may still be delivered; -1 = no limit */
    uint64_t event;   /* 1 + the event of the last segment whose callback has begun */
    uint64_t segment; /* 1 + the number of the last segment whose callback has begun */
    /* number of segments that were reported to the application as void */
    uint64_t voided;
    uint64_t dropped;
    uint64_t holes; /* number of pieces of the result that did not arrive */
    /* The inbox is full: the session reads no more input until callbacks have run. */
    bool behind;
} sgi_delivery;

/* How the segments of a request are numbered. */
typedef struct sgi_segment_numbering {
    uint64_t next;   /* number of the next segment */
    uint64_t voided; /* number of segments made void by the last replacement */
    /* number of segments that were void before the last replacement */
    uint64_t void_before;
    bool replace_due; /* the next segment replaces the earlier ones */
    /* the result says that some segments continue the text of earlier ones */
    bool joined;
} sgi_segment_numbering;

/* Appends a record to the inbox. The record is dropped when there is no memory, and the
 * function returns false. */
bool sgi_deliver(segue_request *request, const sgi_inbox_head *head, sgi_str bytes);
void sgi_deliver_segment(segue_request *request, uint64_t number, uint64_t event,
                         sgi_json block);
/* Delivers a segment that may come before segments with lower numbers. covered: all
 * segments up to this number have arrived. */
void sgi_deliver_numbered(segue_request *request, uint64_t number, uint64_t covered,
                          sgi_json block);
/* Delivers a segment whose index in the result's list is known. */
void sgi_deliver_piece(segue_request *request, uint64_t number, uint64_t event,
                       uint64_t index, sgi_json block);
/* Reports to the application that segments up to this number are not part of the
 * result. */
void sgi_deliver_void(segue_request *request, uint64_t number);
/* Reads from a whole result which segments are void, and reports them to the application.
 * Void are the segments that were replaced, and those whose text was continued. */
void sgi_deliver_void_of_result(segue_request *request, sgi_json result);
/* Delivers the blocks of a whole result that were not delivered as segments. */
void sgi_deliver_remaining_blocks(segue_request *request, sgi_json result);
/* Returns the number of bytes that wait to be delivered. */
size_t sgi_deliver_waiting_bytes(const segue_request *request);
bool sgi_deliver_is_full(const segue_request *request);
/* Stops the source of the segments because the inbox is full. The exchange of a plain
 * call is not read until the inbox has room. For other requests without credit the stream
 * is stopped at its source. For requests with credit the session reads no more until the
 * callbacks have run. */
void sgi_deliver_stop_input(segue_request *request);
int32_t sgi_deliver_run(sgi_ready *ready, int32_t budget);

struct segue_segment {
    /* view.type is NULL until the application first reads the segment */
    segue_segment_view view;
    /* the decoded type of the block; set when the application first reads the segment */
    sgi_buf type;
    sgi_buf text;
};

#endif
