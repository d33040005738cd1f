/* Writes down every message that passes between a scenario and the library, so that
 * tests/schema/check.py can judge what the library said. It does so when the environment
 * variable SEGUE_TAP names a directory, and is nothing otherwise: tap_open then gives
 * NULL, which all functions take.
 *
 * One file per process, PROGRAM.PID.jsonl, three kinds of lines:
 *
 *     {"c":7,"test":"AS-33 ... [pair memory whole]","ours":"server"}
 *     {"c":7,"d":"out","k":12,"m":<the message as it was written>}
 *     {"c":9,"d":"out","k":12,"id":3}
 *
 * The first opens conversation 7. The third is message 12 again with another id (null =
 * without one), but for values that no schema looks at.
 *
 * "d" is seen from the server: what it says goes out. "ours" is the side that the library
 * plays, "both" when it plays both. The other side is a script, which may say anything:
 * what it says tells what an answer belongs to, and is not judged. */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tap tap;

typedef enum tap_way { TAP_IN, TAP_OUT } tap_way;

/* The test whose conversations are opened from here on; NULL = the program alone. */
void tap_test(const char *name);
/* A conversation. ours: "server", "client" or "both". */
tap *tap_open(const char *ours);
void tap_close(tap *t);
/* One message, with or without its newline. */
void tap_message(tap *t, tap_way way, const char *text, size_t len);
/* Bytes of a stream of lines, cut anywhere. */
void tap_bytes(tap *t, tap_way way, const char *bytes, size_t len);
/* The conversation goes on over another connection: halves of lines are gone. */
void tap_cut(tap *t);

#endif
