/* The commands of segue-proxy that look into a store: `segue-proxy store ...`. They use
 * the store alone, and its servers may run or not. look.c reads the arguments,
 * look_acts.c and look_move.c run the commands, and look_print.c prints. */
#ifndef PROXY_LOOK_H
#define PROXY_LOOK_H

#include <segue/segue_ext.h>

#include "text.h"

#include <stdio.h>

/* The exit statuses. */
enum {
    LOOK_OK,
    LOOK_FAILED, /* the store fails, or lacks the task */
    LOOK_WRONG,  /* the arguments are wrong */
    LOOK_FAULTY  /* there is a fault in the store */
};

/* The words of a status. */
#define LOOK_STATUSES 5
extern const char *const look_statuses[LOOK_STATUSES];

/* The arguments of a command, and what it has seen. */
typedef struct look {
    segue_store *store;
    const char *where;               /* the store */
    const char *task, *key, *result; /* NULL = not given; task: also FILE, and TO */
    const char *status, *tool;       /* what `ls` shows; NULL = all */
    long long limit;                 /* of `ls`; 0 = none */
    unsigned long long after;        /* number of the last entry that was shown; of
                                        `rerun`: of the last segment that is kept */
    long long older_s;               /* of `retention` */
    bool has_age, dry_run;
    bool json;
    bool lacks_some; /* a list lacks operations whose records cannot be read */
    long long shown;
    int32_t ended; /* 1 = the task had ended before its log was read */
    struct {
        long long tasks, calls, by_status[LOOK_STATUSES], segments, bytes, unreadable;
    } sums;
    /* of `verify`: number of the last entry, and whether an end was seen */
    unsigned long long last;
    bool has_end;
    bool is_faulty;
} look;

/* Runs the command of argv[1]; argv[0] is "store". Returns the exit status. */
int look_run(int argc, char **argv);

/* ---- the commands ---- */

int look_ls(look *l);
int look_stats(look *l);
int look_show(look *l);
int look_watch(look *l);
int look_cancel(look *l);
int look_answer(look *l);
int look_rerun(look *l);
int look_rm(look *l);
int look_verify(look *l);
int look_export(look *l);
int look_import(look *l);
int look_migrate(look *l);
int look_retention(look *l);
int look_compact(look *l);

/* ---- shared by the files ---- */

#define LOOK_TIME_MAX 3155760000 /* seconds; 100 years */
/* True when the summary has the status and the tool that are asked for. */
bool look_is_wanted(const look *l, json task);

/* Says on standard error what has failed and why, and frees the error. Returns
 * LOOK_FAILED. */
int look_fail(const char *what, segue_status status, segue_error *error);
/* Opens a store. A file must exist unless `makes`: to look must not make one. Says on
 * standard error what has failed; returns an exit status. */
int look_open_store(const char *where, bool makes, segue_store **store);
/* Says on standard error that operations are left out, once. */
void look_leave_out(look *l);
/* What a command that has succeeded returns: LOOK_FAULTY when it left operations out. */
int look_end(const look *l);
/* Passes the summaries of all operations whose records can be read. Returns LOOK_OK or
 * LOOK_FAILED. */
int look_list(look *l, segue_store_json_fn fn, void *user);
/* Adds the summary of an operation to the sums. */
void look_add_sums(look *l, json task);
/* Reads all logs and names those that are not what a server writes. Returns LOOK_OK,
 * LOOK_FAULTY or LOOK_FAILED. */
int look_find_faults(look *l);
/* What a person at a terminal sees of a command that takes long, on standard error. */
typedef struct look_progress {
    bool is_shown;
    long long whole; /* of whatever `part` counts; 0 = not known */
    long long part;
    long long operations;
    int percent; /* what was drawn last */
} look_progress;
void look_progress_begin(look_progress *p, long long whole);
/* Notes one more operation. p->part is up to date. */
void look_progress_step(look_progress *p);
void look_progress_end(look_progress *p);
#define LOOK_TIME_SIZE 32
/* Writes the time that was this number of seconds ago, in the form of the times of
 * summaries. */
void look_write_time(char out[LOOK_TIME_SIZE], long long ago_s);
/* Prints a text of a store, whose control characters a terminal must not get. */
void look_print_safely(FILE *out, const char *p, size_t len);
void look_print_line(const char *line, size_t len);
void look_print_summary(json task);
void look_print_entry(json entry);

#endif
