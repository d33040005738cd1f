/* Writes one message at the end of a conversation's output, in the frame that the
 * conversation uses: a line, the body of an HTTP answer, or a server-sent event. */
#ifndef SGI_SENDING_H
#define SGI_SENDING_H

#include "engine/conversation/conn.h"

/* A message that is being written at the end of conn->out. The caller begins the message,
 * writes its members with `w`, and ends the message. */
typedef struct sgi_sending {
    sgi_conn *conn;
    size_t mark;
    /* position in conn->out at which the message begins, behind the beginning of its
     * frame */
    size_t body;
    int depth; /* number of JSON objects that are still open */
    bool last; /* the message is a response after which the HTTP exchange ends */
    /* sgi_batch_keep_answer has stored the message before, so the message must not be
     * stored again */
    bool kept;
    bool is_note; /* the message is a notification, which a replay can drop */
    /* the request id, if the message is a response; empty for other messages */
    sgi_str id;
    sgi_jw w;
} sgi_sending;

/* Begins {"jsonrpc":"2.0","id":<id>,"result":{ and adds the member resultType, unless
 * result_type is NULL. */
void sgi_send_begin_result(sgi_sending *sending, sgi_conn *conn, sgi_str id,
                           const char *result_type);
/* Begins one of several responses with the same id. last = true: no further response
 * follows. The caller can change sending->last before sgi_send_end. */
void sgi_send_begin_response(sgi_sending *sending, sgi_conn *conn, sgi_str id, bool last);
/* Begins {"jsonrpc":"2.0","method":"<method>","params":{ */
void sgi_send_begin_notification(sgi_sending *sending, sgi_conn *conn,
                                 const char *method);
/* Begins {"jsonrpc":"2.0","id":<id>,"method":"<method>","params":{ */
void sgi_send_begin_request(sgi_sending *sending, sgi_conn *conn, int64_t id,
                            sgi_str method);
/* Begins a request whose id is given as JSON text. */
void sgi_send_begin_request_with_id(sgi_sending *sending, sgi_conn *conn, sgi_json id,
                                    sgi_str method);
/* The members of a notification as JSON, without "jsonrpc" and without braces:
 * "method":"<method>","params":{...}. A log keeps notifications in this form. `begin`
 * writes everything up to the open params. `read` returns false when the method is not
 * this one. */
void sgi_begin_notification_members(sgi_jw *w, const char *method);
bool sgi_read_notification_members(sgi_str members, const char *method, sgi_json *params);
/* Sends a notification of these members. */
void sgi_send_notification_members(sgi_conn *conn, sgi_str members);
/* Closes all open objects and ends the message. Returns false when out of memory or
 * without a peer. When out of memory, also closes the conversation: a peer that sees the
 * end can try again, while a peer that only misses an answer would wait. Returns true
 * when the message was omitted because the client accepts no event stream. */
bool sgi_send_end(sgi_sending *sending);
/* Sends a whole error response. An empty id means that the request's id is unknown. */
void sgi_send_error(sgi_conn *conn, sgi_str id, int32_t code, sgi_str message,
                    sgi_json data);
/* Sends a whole error response. error: the error object as JSON. Returns false when out
 * of memory. */
bool sgi_send_error_object(sgi_conn *conn, sgi_str id, sgi_json error);

/* Sends the collected answers of a batch as one array. messages: the answers, one on each
 * line. */
void sgi_send_batch_array(sgi_conn *conn, sgi_str messages);
/* Sends one collected answer of a batch as an event of the stream. */
void sgi_send_batch_answer(sgi_conn *conn, sgi_str message);

/* Sends a request or a notification. message: the JSON text of the whole message, without
 * line ends. */
void sgi_send_message_text(sgi_conn *conn, sgi_str message);

/* ---- HTTP exchanges ---- */

/* Makes the answer of an exchange an event stream. Does nothing when the form of the
 * answer is already decided, or when the client accepts no event stream. */
void sgi_send_open_event_stream(sgi_conn *conn);
/* Ends an HTTP exchange whose request was withdrawn. An open event stream ends without an
 * answer. If no message was sent yet, the answer is status 202 without a body. */
void sgi_send_end_without_answer(sgi_conn *conn);
/* Return the text before a message and the text after a message, for code that writes
 * messages without the functions above. */
sgi_str sgi_frame_head(const sgi_conn *conn);
sgi_str sgi_frame_tail(const sgi_conn *conn);
/* Replaces line ends by blanks in the output from position `from` on. The application's
 * JSON can contain line ends between tokens, and a frame must not contain line ends. */
void sgi_frame_blank_line_ends(sgi_buf *out, size_t from);

#endif
