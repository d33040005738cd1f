/* The client of the demo. It is a separate process, so that it can be killed. */
#ifndef READER_H
#define READER_H

/* The files of a reader. Everything that must outlive the reader is in output and
 * state. */
typedef struct reader_paths {
    const char *where; /* URL of the server, or the program to start as the server */
    const char *store; /* SQLite file for a server that the reader starts */
    const char *text;  /* file to read */
    const char *output;
    const char *state;
} reader_paths;

/* Reads the text through the server into output, from where an earlier reader ended.
 * Reports on standard error: "reader start N", "reader at N", "reader done", "reader
 * failed WHY". Returns an exit status. */
int reader_run(const reader_paths *paths, int duration_ms);

#endif
