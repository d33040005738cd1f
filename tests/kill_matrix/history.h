/* The history of a party of a run: a text file, one event a line, to which the processes
 * of the party append. A line is written whole before the library hears of the event, so
 * a process that is killed leaves it behind. SEGUE_HISTORY in the environment names the
 * file; without it nothing is written. tests/chaos/README.md lists the events. */
#ifndef HISTORY_H
#define HISTORY_H

#include <stddef.h>
#include <stdint.h>

#define HISTORY_SUM 17 /* 16 hexadecimal digits of SHA-256, and the NUL */

void history_sum(const void *data, size_t len, char sum[HISTORY_SUM]);
/* The tool makes this segment of the call. */
void history_made(const char *call, int64_t number, const void *data, size_t len);
/* The tool takes effect for the call. */
void history_effect(const char *call);
/* Any other line, formatted as printf does, without its newline. */
void history_write(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
