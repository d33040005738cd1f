/* The JSON-RPC 2.0 envelope: the kind of a message, and its parts as views. An id is a
 * string or an integer (R-0-1). A response has exactly one of result and error
 * (R-0-2). */
#ifndef SGI_JSONRPC_H
#define SGI_JSONRPC_H

#include "wire/json_read.h"
#include "wire/json_write.h"

/* The key in _meta that names the task to which a message belongs: {"taskId"}
 * (2025-11-25). */
#define SGI_RELATED_TASK "io.modelcontextprotocol/related-task"

#define SGI_RPC_PARSE_ERROR (-32700)
#define SGI_RPC_INVALID_REQUEST (-32600)
#define SGI_RPC_METHOD_NOT_FOUND (-32601)
#define SGI_RPC_INVALID_PARAMS (-32602)
#define SGI_RPC_INTERNAL_ERROR (-32603)
/* the error code in the versions before 2026-07-28 */
#define SGI_RPC_RESOURCE_NOT_FOUND (-32002)
#define SGI_RPC_HEADER_MISMATCH (-32020)
#define SGI_RPC_MISSING_CAPABILITY (-32021)
#define SGI_RPC_UNSUPPORTED_VERSION (-32022)

typedef enum sgi_message_kind {
    /* the message is malformed; its id is set if the id could be read */
    SGI_MESSAGE_INVALID = 0,
    SGI_MESSAGE_REQUEST,
    SGI_MESSAGE_NOTIFICATION,
    SGI_MESSAGE_RESULT,
    SGI_MESSAGE_ERROR
} sgi_message_kind;

#define SGI_MESSAGE_PARTS 2

typedef struct sgi_message {
    sgi_message_kind kind;
    const char *problem; /* the reason why the message is INVALID */
    /* true = the message is a response, which must not be answered; valid even for an
     * INVALID message */
    bool is_response;
    /* true = the message has a method, so it is a request or a notification, and its
     * sender has chosen its id; valid even for an INVALID message */
    bool is_call;
    /* true = the message is INVALID because it is too long, and only its beginning was
     * read */
    bool is_cut;
    /* a string or an integer; empty when the id is absent, null or unusable */
    sgi_json id;
    sgi_json method; /* the name of the method, as a JSON string */
    sgi_json params; /* an object; empty = the message has no params */
    sgi_json result;
    sgi_json error; /* an object with an integer code; set for an error response */
    /* params or result, and the object _meta or payload inside it; most look-ups are in
     * these two objects */
    sgi_json_part parts[SGI_MESSAGE_PARTS];
} sgi_message;

/* Reads a message and its parts. members: an array of SGI_MESSAGE_MEMBERS elements.
 * shapes: what is remembered of earlier messages of the peer; NULL = nothing. */
bool sgi_message_read(sgi_message *message, sgi_json_reader *reader, sgi_str text,
                      sgi_json_member *members, size_t *count, sgi_json_error *error,
                      sgi_json_shapes *shapes);

/* Determines the kind of a message from the members of an accepted text. Does not change
 * message->parts. */
void sgi_message_classify(sgi_message *message, const sgi_json_member *members,
                          size_t count);

/* Reads the beginning of a message that is too long and was cut off. The message becomes
 * INVALID with this problem. is_call and is_response show what kind of message was cut
 * off. The id is set only when is_call or is_response is true. */
void sgi_message_read_truncated(sgi_message *message, sgi_json_reader *reader,
                                sgi_str beginning, const char *problem);

/* The number of members that the reader must record for sgi_message_classify. A message
 * with more members is refused. */
#define SGI_MESSAGE_MEMBERS 16

/* Returns the name of a method or a tool as text. A name with escapes is decoded into
 * `room`: any character of the name can be escaped, and some clients escape each slash.
 * The result is empty when the value is not a string, has a NUL, or has escapes and is
 * longer than SGI_NAME_MAX. */
/* one character can take 12 bytes, e.g. \ud83d\ude00 */
#define SGI_NAME_MAX (2 + 128 * 12)
sgi_str sgi_method_text(sgi_json method, char room[SGI_NAME_MAX]);

/* True when the value is usable as an id: a string or an integer. The same rule holds for
 * progress tokens. */
bool sgi_id_is_usable(sgi_json id);

/* Appends an id in its canonical form: equal ids give equal texts. Integers are decimal,
 * and strings are escaped in one way. 1 and "1" are different ids. Answers use the
 * canonical form, too. */
void sgi_id_write_canonical(sgi_json id, sgi_buf *out);

/* Writes an error object: code, message and, unless `data` is empty, data. */
void sgi_write_error_object(sgi_jw *w, int32_t code, sgi_str message, sgi_json data);
/* Appends {"jsonrpc":"2.0","id":<id>,"error":{...}} without a newline. data: empty = the
 * error has no data. id: empty = the message has no id. (MCP's schema allows an error
 * without an id and does not allow the id null, unlike JSON-RPC itself.) */
void sgi_write_rpc_error(sgi_buf *out, sgi_json id, int32_t code, sgi_str message,
                         sgi_json data);

#endif
