/* The JSON-RPC 2.0 envelope: what a message is, and its parts as spans (R-0-1, R-0-2). */
#ifndef SGI_JSONRPC_H
#define SGI_JSONRPC_H

#include "wire/json_read.h"
#include "wire/json_write.h"

/* A key of _meta: {"taskId"} of the task that a message belongs to (2025-11-25). */
#define SGI_RELATED_TASK "io.modelcontextprotocol/related-task"

#define SGI_RPC_PARSE_ERROR (-32700)
#define SGI_RPC_INVALID_REQUEST (-32600)
#define SGI_RPC_METHOD_NOT_FOUND (-32601)
#define SGI_RPC_INVALID_PARAMS (-32602)
#define SGI_RPC_INTERNAL_ERROR (-32603)
#define SGI_RPC_RESOURCE_NOT_FOUND (-32002) /* before 2026-07-28 */
#define SGI_RPC_HEADER_MISMATCH (-32020)
#define SGI_RPC_MISSING_CAPABILITY (-32021)
#define SGI_RPC_UNSUPPORTED_VERSION (-32022)

typedef enum sgi_message_kind {
    SGI_MESSAGE_INVALID = 0, /* id is set when it could be read */
    SGI_MESSAGE_REQUEST,
    SGI_MESSAGE_NOTIFICATION,
    SGI_MESSAGE_RESULT,
    SGI_MESSAGE_ERROR
} sgi_message_kind;

#define SGI_MESSAGE_PARTS 2

typedef struct sgi_message {
    sgi_message_kind kind;
    const char *problem; /* INVALID: why */
    bool is_response;    /* also when INVALID: it is no request, so it gets no answer */
    bool is_call;        /* also when INVALID: it has a method, its id is its own */
    bool is_cut;         /* INVALID as it is too long: only its beginning was read */
    sgi_json id;         /* a string or an integer; empty when absent, null or unusable */
    sgi_json method;     /* a string value */
    sgi_json params;     /* an object, or empty */
    sgi_json result;
    sgi_json error; /* an object with an integer code */
    /* of params, and of _meta or payload there: most messages are read from these */
    sgi_json_part parts[SGI_MESSAGE_PARTS];
} sgi_message;

/* Reads a text, with the parts of the message. members: SGI_MESSAGE_MEMBERS of them. */
bool sgi_message_read(sgi_message *message, sgi_json_reader *reader, sgi_str text,
                      sgi_json_member *members, size_t *count, sgi_json_error *error);

/* Sorts the members of a message that has passed the reader. Its parts stay as they
 * are. */
void sgi_message_sort(sgi_message *message, const sgi_json_member *members, size_t count);

/* What a message was to be that is cut for its length, as far as its beginning tells:
 * INVALID for this problem. It has an id only where it is also known to be a call or a
 * response. */
void sgi_message_read_cut(sgi_message *message, sgi_json_reader *reader,
                          sgi_str beginning, const char *problem);

/* Members the reader must record for sgi_message_sort. It must see all that there are:
 * who receives a message with more refuses it. */
#define SGI_MESSAGE_MEMBERS 16

/* A method, or the name of a tool, as text. Any of its characters may be escaped, and
 * some writers escape each slash: a short one is decoded into room. Empty when it is no
 * string, holds a NUL, or is escaped and longer than that. */
#define SGI_NAME_MAX (2 + 128 * 12) /* \ud83d\ude00 is one character */
sgi_str sgi_name_text(sgi_json method, char room[SGI_NAME_MAX]);

/* Is it usable as an id, or as a token that follows the same rules: a string or an
 * integer? */
bool sgi_id_is_usable(sgi_json id);

/* Appends a usable id in the one form that equal ids share, which is also the form it is
 * echoed in: integers in decimal, strings escaped our way. 1 and "1" stay two ids. */
void sgi_id_canonical(sgi_json id, sgi_buf *out);

/* {"jsonrpc":"2.0","id":<id>,"error":{...}} without newline; data empty = none. id empty
 * = left out: MCP's schema makes it optional and has no null, unlike plain JSON-RPC. */
void sgi_rpc_error_message(sgi_buf *out, sgi_json id, int32_t code, sgi_str message,
                           sgi_json data);

#endif
