/* Questions that a server of the handshake eras asks by requests of its own (elicitation,
 * sampling, roots): each goes to the request of the application that it belongs to, and
 * the application's answer goes back as a response. They are remembered as long as that
 * request: one that comes again, from a stream that was taken up, is the same one, and
 * gets the same answer (R-975-16).
 *
 * An id means something in its wire session only: what was asked in one that is gone is
 * open no more, and its server asks anew. */
#ifndef SGI_ASKED_H
#define SGI_ASKED_H

#include "engine/conn.h"

/* A request of the server, which may be a question. */
void sgi_asked_handle(segue_session *session, const sgi_message *msg);
/* One that is malformed: told so when it has an id. */
void sgi_asked_malformed(segue_session *session, const sgi_message *msg);
/* It is one of a kind that was not declared: handling it refuses it. */
bool sgi_asked_refuses(const segue_session *session, const sgi_message *msg);
/* The server withdraws it; false: it was never asked. */
bool sgi_asked_withdraw(segue_session *session, sgi_json params);
/* SEGUE_E_NOT_FOUND: no such question is open. SEGUE_E_INVALID: it is none. */
segue_status sgi_asked_answer(segue_request *request, const char *key, sgi_json answer);
/* The same with an error object. */
segue_status sgi_asked_answer_error(segue_request *request, const char *key,
                                    sgi_json error);
/* A message is through: answers that waited for that go out. */
void sgi_asked_go(segue_session *session);
/* An answer may not have reached the server, whose question has this id: it is sent once
 * more. A server that gets it twice knows the id (R-975-16), or drops the second. */
void sgi_asked_lost(segue_session *session, sgi_str id);
/* asked_owner.c: whom a question is for, that names this task or none; NULL = nobody. */
segue_request *sgi_asked_owner(segue_session *session, sgi_json task_id);
/* Is it the method of a question that a revision has? */
bool sgi_asked_is_known(sgi_str method);
/* The application has declared that it can be asked something. */
bool sgi_asked_may_come(const segue_session *session);
/* Somebody is thinking about one. */
bool sgi_asked_is_open(const segue_request *request);
/* The request has ended: who waits for its answers is told that none will come. */
void sgi_asked_end(segue_request *request);
void sgi_asked_clear(segue_request *request);

#endif
