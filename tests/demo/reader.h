/* The client of the demo: a process of its own, so that it can be killed. */
#ifndef READER_H
#define READER_H

/* What a reader works with. Everything that has to outlive it is in output and state. */
typedef struct reader_paths {
    const char *where; /* URL of the server, or the program to start as the server */
    const char *store; /* SQLite file of a server that is started */
    const char *text;  /* file to read */
    const char *output;
    const char *state;
} reader_paths;

/* Reads the text through the server into output, from where an earlier reader ended;
 * tells on standard error how it goes on: "reader start N", "reader at N", "reader done",
 * "reader failed WHY". Returns an exit status. */
int reader_run(const reader_paths *paths, int duration_ms);

#endif
