/* The command `segue-proxy board`: the task board of a store, whose servers may run or
 * not. */
#ifndef PROXY_BOARD_H
#define PROXY_BOARD_H

/* Runs the command; argv[0] is "board". Serves until the program is asked to end. Returns
 * the exit status. */
int board_run(int argc, char **argv);

#endif
