/* Writes one message at the end of a conversation's output, in the frames that the
 * conversation uses: a line, the body of an HTTP answer, or a server-sent event. */
#ifndef SGI_SENDING_H
#define SGI_SENDING_H

#include "engine/conversation/conn.h"

/* A message that is being written at the end of conn->out. The caller begins the message,
 * writes its members with w, and ends it. */
typedef struct sgi_sending {
    sgi_conn *conn;
    size_t mark;
    /* position in conn->out of the message itself, after the beginning of its frame */
    size_t body;
    int depth; /* number of objects that are still open */
    bool last; /* the message is a response, after which the HTTP exchange ends */
    /* the message was stored before by sgi_batch_keep, so it must not be stored again */
    bool kept;
    bool is_note; /* the message is a notification, which may be dropped */
    sgi_str id;   /* the id, if the message is a response */
    sgi_jw w;
} sgi_sending;

/* Begins {"jsonrpc":"2.0","id":<id>,"result":{ and adds the member resultType when
 * result_type is not NULL. */
void sgi_send_result(sgi_sending *sending, sgi_conn *conn, sgi_str id,
                     const char *result_type);
/* Begins one of several responses with this id. last: no further response follows. The
 * caller may still change sending->last before sgi_send_end. */
void sgi_send_response(sgi_sending *sending, sgi_conn *conn, sgi_str id, bool last);
/* Begins {"jsonrpc":"2.0","method":"<method>","params":{ */
void sgi_send_notification(sgi_sending *sending, sgi_conn *conn, const char *method);
/* Begins {"jsonrpc":"2.0","id":<id>,"method":"<method>","params":{ */
void sgi_send_request(sgi_sending *sending, sgi_conn *conn, int64_t id, sgi_str method);
/* Begins a request. id: the JSON text of its id. */
void sgi_send_request_as(sgi_sending *sending, sgi_conn *conn, sgi_json id,
                         sgi_str method);
/* Sends a whole notification. members: its members, without "jsonrpc" and without
 * braces. */
void sgi_send_notification_members(sgi_conn *conn, sgi_str members);
/* Closes all open objects and the message. Returns false when there was no memory or no
 * peer. When out of memory, also closes the conversation: a peer that sees the end can
 * try again, but a peer that only lacks an answer would wait. Returns true when the
 * message was left out because the client accepts no event stream. */
bool sgi_send_end(sgi_sending *sending);
/* Sends a whole error response. id empty = the id is unknown. */
void sgi_send_error(sgi_conn *conn, sgi_str id, int32_t code, sgi_str message,
                    sgi_json data);
/* Sends a whole error response whose error object is given as JSON. Returns false when
 * out of memory. */
bool sgi_send_error_object(sgi_conn *conn, sgi_str id, sgi_json error);

/* Sends the collected answers of a batch as one array. messages: the answers, one per
 * line. */
void sgi_send_array(sgi_conn *conn, sgi_str messages);
/* Sends one collected answer of a batch as an event of the stream. */
void sgi_send_batch_answer(sgi_conn *conn, sgi_str message);

/* Sends a request or a notification. message: its JSON text, without line ends. */
void sgi_send_text(sgi_conn *conn, sgi_str message);

/* ---- HTTP exchanges ---- */

/* Makes the answer an event stream, if the form of the answer is not decided yet. */
void sgi_send_open_events(sgi_conn *conn);
/* Ends an HTTP exchange whose request was withdrawn. An open event stream ends; if
 * nothing was sent yet, the answer is the status 202 without a body. */
void sgi_send_no_answer(sgi_conn *conn);
/* Return the text before each message and the text after it, for code that writes
 * messages without the functions above. */
sgi_str sgi_frame_head(const sgi_conn *conn);
sgi_str sgi_frame_tail(const sgi_conn *conn);
/* Replaces the line ends in the output after position `from` by blanks. JSON of the
 * application may contain line ends between tokens, which a frame must not contain. */
void sgi_frame_flatten(sgi_buf *out, size_t from);

#endif
