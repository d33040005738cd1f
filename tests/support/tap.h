/* Writes every message between a scenario and the library to a file, so that
 * tests/schema/check.py can check the messages of the library. It works when the
 * environment variable SEGUE_TAP names a directory. Otherwise tap_open returns NULL,
 * which all functions accept, and nothing is written.
 *
 * There is one file per process, PROGRAM.PID.jsonl, with three kinds of lines:
 *
 *     {"c":7,"test":"AS-33 ... [pair memory whole]","ours":"server"}
 *     {"c":7,"d":"out","k":12,"m":<the message as it was written>}
 *     {"c":9,"d":"out","k":12,"id":3}
 *
 * The first line opens conversation 7. The third is message 12 again with another id
 * (null = without one); values that no schema looks at may differ, too.
 *
 * "d" is the direction as the server sees it: its messages are "out". "ours" is the side
 * that the library plays, "both" when it plays both. The other side is a script, whose
 * messages are not checked. They only show to which request an answer belongs. */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tap tap;

typedef enum tap_way { TAP_IN, TAP_OUT } tap_way;

/* Names the test of the conversations that are opened from here on; NULL = the program
 * alone. */
void tap_test(const char *name);
/* Opens a conversation. ours: "server", "client" or "both". */
tap *tap_open(const char *ours);
void tap_close(tap *t);
/* Notes one message, with or without its newline. */
void tap_message(tap *t, tap_way way, const char *text, size_t len);
/* Notes bytes of a stream of lines, cut anywhere. */
void tap_bytes(tap *t, tap_way way, const char *bytes, size_t len);
/* Notes that the conversation continues over another connection. Incomplete lines are
 * dropped. */
void tap_cut(tap *t);

#endif
