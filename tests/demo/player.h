/* A child process of the conductor: the client, or the server. It reports on standard
 * error, its "voice", line by line; processes that it starts share this standard
 * error. */
#ifndef PLAYER_H
#define PLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct player {
    pid_t pid;   /* not reaped yet; 0 = none */
    int voice;   /* read end of its standard error; -1 = none */
    bool killed; /* the conductor killed it alone */
    char heard[4096];
    size_t heard_len;
} player;

/* Starts a program as the leader of a process group. Returns 0 or an errno. */
int player_start(player *p, char *const argv[]);

/* Passes on the lines that have come. Returns false when the voice has ended: the player,
 * and all that it started, are gone or about to be. */
bool player_hear(player *p, void (*take)(void *user, const char *said), void *user);

/* Kills the player and all that it started, if it is there. */
void player_kill_all(const player *p);

/* Waits for the player and the processes it left behind; returns its status. */
int player_reap(player *p);

#endif
