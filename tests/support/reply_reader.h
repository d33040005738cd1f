/* Reads HTTP/1.1 answers out of bytes as they come, for raw clients of tests: bodies of
 * JSON and the data of events become messages. Strict: an answer that is not framed as it
 * should be fails the test. Knows no socket. */
#ifndef REPLY_READER_H
#define REPLY_READER_H

#include <stdbool.h>
#include <stddef.h>

typedef enum reply_stage {
    REPLY_HEAD = 0,
    REPLY_BODY,
    REPLY_CHUNK_SIZE,
    REPLY_CHUNK,
    REPLY_CHUNK_END,
    REPLY_DONE /* until reply_reader_next */
} reply_stage;

typedef struct reply_reader {
    void (*on_message)(void *user, const char *text, size_t len);
    void *user;
    reply_stage stage;
    int status;
    bool is_events;
    bool closes;          /* the connection ends with the answer */
    char session[128];    /* Mcp-Session-Id, "" = none */
    char last_event[128]; /* id of the last event, "" = none */
    size_t left;          /* of the body or the chunk */
    char *bytes;          /* not looked at yet */
    size_t len;
    char *text; /* of the body; of events, what is no whole event yet */
    size_t text_len;
} reply_reader;

void reply_reader_add(reply_reader *r, const char *bytes, size_t len);
/* On to the next answer. */
void reply_reader_next(reply_reader *r);
void reply_reader_free(reply_reader *r);

#endif
