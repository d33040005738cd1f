/* Reads HTTP/1.1 answers from bytes as they arrive, for raw clients of tests: JSON bodies
 * and the data of events become messages. An answer with wrong framing fails the test.
 * The reader knows no socket. */
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
    REPLY_DONE /* until reply_reader_next is called */
} reply_stage;

typedef struct reply_reader {
    void (*on_message)(void *user, const char *text, size_t len);
    void *user;
    reply_stage stage;
    int status;
    bool is_events;
    bool closes;          /* the connection ends with this answer */
    char session[128];    /* value of Mcp-Session-Id, "" = none */
    char last_event[128]; /* id of the last event, "" = none */
    size_t left;          /* the number of bytes left of the body or the chunk */
    char *bytes;          /* input that was not read yet */
    size_t len;
    char *text; /* text of the body, or the beginning of an incomplete event */
    size_t text_len;
} reply_reader;

void reply_reader_add(reply_reader *r, const char *bytes, size_t len);
/* Starts reading the next answer. */
void reply_reader_next(reply_reader *r);
void reply_reader_free(reply_reader *r);

#endif
