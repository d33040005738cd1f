/* Writing one message at the end of a conversation's output, in the frames that the
 * conversation uses: a line, the body of an HTTP answer, or a server-sent event. */
#ifndef SGI_SENDING_H
#define SGI_SENDING_H

#include "engine/conn.h"

/* A message under construction at the end of conn->out. Begin, write members with w,
 * end. */
typedef struct sgi_sending {
    sgi_conn *conn;
    size_t mark;
    size_t body;  /* behind the head of its frame */
    int depth;    /* objects to close */
    bool last;    /* a response: it ends an HTTP exchange */
    bool kept;    /* it has been in a batch already */
    bool is_note; /* a notification: its client can do without it */
    sgi_str id;   /* of a response */
    sgi_jw w;
} sgi_sending;

/* {"jsonrpc":"2.0","id":<id>,"result":{ and, when result_type is not NULL, its member */
void sgi_send_result(sgi_sending *sending, sgi_conn *conn, sgi_str id,
                     const char *result_type);
/* The same; further responses with this id follow when it is not the last one. Whether it
 * is may be found out later, by setting sending->last before its end. */
void sgi_send_response(sgi_sending *sending, sgi_conn *conn, sgi_str id, bool last);
/* {"jsonrpc":"2.0","method":"<method>","params":{ */
void sgi_send_notification(sgi_sending *sending, sgi_conn *conn, const char *method);
/* {"jsonrpc":"2.0","id":<id>,"method":"<method>","params":{ */
void sgi_send_request(sgi_sending *sending, sgi_conn *conn, int64_t id, sgi_str method);
/* The same under an id that is JSON text. */
void sgi_send_request_as(sgi_sending *sending, sgi_conn *conn, sgi_json id,
                         sgi_str method);
/* A whole notification of these members, without "jsonrpc" and braces. */
void sgi_send_members(sgi_conn *conn, sgi_str members);
/* Closes what is open. Out of memory closes the conversation: a peer that sees the end
 * can try again, one that waits for an answer that was never sent cannot. False when
 * there was no memory or nobody is there; true also for what a client that takes no
 * event stream does not get. */
bool sgi_send_end(sgi_sending *sending);
/* A whole error response. id empty = unknown. */
void sgi_send_error(sgi_conn *conn, sgi_str id, int32_t code, sgi_str message,
                    sgi_json data);
/* The same with an error object that is JSON already; false when out of memory. */
bool sgi_send_error_object(sgi_conn *conn, sgi_str id, sgi_json error);

/* Answers of a batch, one per line, as one array. */
void sgi_send_array(sgi_conn *conn, sgi_str messages);
/* One of them, as an event. */
void sgi_send_kept(sgi_conn *conn, sgi_str message);

/* A request or a notification that is JSON already, without line ends. */
void sgi_send_text(sgi_conn *conn, sgi_str message);

/* ---- HTTP exchanges ---- */

/* The answer becomes an event stream, if that is still open. */
void sgi_send_open_events(sgi_conn *conn);
/* The exchange ends without an answer, as its request was withdrawn: a stream ends, and
 * what is none is accepted (202). */
void sgi_send_nothing(sgi_conn *conn);
/* What stands before and after each message that is not one of these functions' work. */
sgi_str sgi_frame_head(const sgi_conn *conn);
sgi_str sgi_frame_tail(const sgi_conn *conn);
/* JSON of the application may have line ends between its tokens, which a frame must not:
 * from this place on they become blanks. */
void sgi_frame_flatten(sgi_buf *out, size_t from);

#endif
