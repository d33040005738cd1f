/* The newest progress and the newest log message of a request that found no room in the
 * output of their conversation, because the client reads more slowly than the handler
 * reports. A newer message replaces the one of its kind that waits. What waits is sent
 * when the transport has taken output, and in any case before the answer. */
#ifndef SGI_LATE_NOTES_H
#define SGI_LATE_NOTES_H

#include "engine/server/peer.h"

typedef enum sgi_note_kind {
    SGI_NOTE_PROGRESS,
    SGI_NOTE_LOG,
} sgi_note_kind;

#define SGI_NOTE_KINDS 2

typedef struct sgi_late_notes sgi_late_notes;

/* Returns the method of the notifications of this kind. */
const char *sgi_note_method(sgi_note_kind kind);

/* Lets a message wait. params: a JSON object. A message of the same kind that waits is
 * left out, and counted. Returns SEGUE_E_NOMEM when out of memory. The reply has a
 * peer. */
segue_status sgi_late_note_keep(sgi_reply *reply, sgi_note_kind kind, sgi_json params);
/* Sends the messages that wait. */
void sgi_late_notes_send(sgi_reply *reply);
/* Forgets the messages that wait, because the request is over. The reply has a peer. */
void sgi_late_notes_drop(sgi_reply *reply);

#endif
