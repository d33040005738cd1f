/* A child process of the conductor: the client, or the server. What it has to tell, it
 * tells on standard error, line by line; processes that it starts speak with the same
 * voice. */
#ifndef PLAYER_H
#define PLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct player {
    pid_t pid;   /* not reaped; 0 = none */
    int voice;   /* readable; -1 = none */
    bool killed; /* by the conductor, with a single kill */
    char heard[4096];
    size_t heard_len;
} player;

/* Starts a program as the leader of a process group. Returns 0 or an errno. */
int player_start(player *p, char *const argv[]);

/* Hands over the lines that have come. False when the voice has ended: the player, and
 * all that it started, are gone or about to be. */
bool player_hear(player *p, void (*take)(void *user, const char *said), void *user);

/* Kills the player and all that it started, if it is there. */
void player_kill_all(const player *p);

/* Waits for the player and for what it left behind; returns its status. */
int player_reap(player *p);

#endif
