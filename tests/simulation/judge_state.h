/* What a judge remembers of a history. */
#ifndef JUDGE_STATE_H
#define JUDGE_STATE_H

#include "simulation/judge.h"

#define JUDGE_NAME 32
#define JUDGE_FIELDS 16
#define JUDGE_RUNS 64

typedef struct judge_segment {
    uint64_t digest;
    uint64_t number;    /* the number that callers saw; 0 = none */
    uint64_t voided_by; /* 1 + the segment before which it was replaced; 0 = it stands */
    bool seen;
} judge_segment;

typedef struct judge_field {
    char name[JUDGE_NAME];
    uint64_t digest;
} judge_field;

typedef struct judge_run {
    char name[JUDGE_NAME];
    char asks[80];
    char end[8];
    bool told, waits; /* it waits for the answer to `asks` */
} judge_run;

/* A log message of a handler. */
typedef struct judge_log {
    char run[JUDGE_NAME];
    uint64_t number, level;
    uint64_t line; /* the line of the history that tells of it */
} judge_log;

typedef struct judge_operation {
    struct judge_operation *next;
    char name[JUDGE_NAME], person[JUDGE_NAME];
    bool lasts, restarts, numbered;
    bool named;      /* a result must not come before a caller is told the task */
    bool may_orphan; /* a cancellation reaches no task that no caller was told of */
    size_t gap;      /* the segment that callers need not be shown; 0 = none */
    judge_segment *segments;
    size_t count, cap;
    size_t standing; /* the first segment that was not replaced */
    size_t most_seen;
    judge_field fields[JUDGE_FIELDS];
    int field_count;
    judge_run runs[JUDGE_RUNS];
    int run_count;
    judge_log *logs;
    size_t log_count;
    bool cancelled;
    bool overdue;      /* a caller's time limit is over */
    int faults_before; /* faults before the call started */
} judge_operation;

/* What a caller was shown of an operation. */
typedef struct judge_view {
    size_t first, last; /* the segments [first, last) stand */
    bool drops;         /* the next segment replaces those before it */
} judge_view;

/* A process that calls, and the messages that it has sent since its calls had news. */
typedef struct judge_process {
    struct judge_process *next;
    char name[JUDGE_NAME];
    int64_t since_ms;
    uint64_t sent;
    uint64_t least_level; /* its server sends no messages of lower levels... */
    uint64_t hushed_line; /* ...that handlers gave after this line */
    bool keeps_level;     /* the next server knows the level too */
} judge_process;

typedef struct judge_limits {
    int64_t since_ms, ms, wire_ms, grace_ms; /* ms: 0 = there is no limit */
} judge_limits;

typedef struct judge_heard {
    const judge_operation *op;
    size_t index; /* of the log message */
} judge_heard;

typedef struct judge_caller {
    struct judge_caller *next;
    char name[JUDGE_NAME];
    judge_process *process;
    judge_operation *op;
    judge_view now, kept;
    bool open, ended;
    char status[16];
    judge_limits limits;
    uint64_t level; /* the lowest level of log messages that it wants */
    bool shares;    /* it may get messages of the other calls of its process */
    bool repeats;   /* it may get messages again after a fault */
    judge_heard *heard;
    size_t heard_count;
} judge_caller;

/* The process of a client. */
typedef struct judge_client {
    struct judge_client *next;
    char name[JUDGE_NAME];
    int64_t first_start_ms; /* the first of `starts`, within some seconds */
    uint64_t starts;
} judge_client;

struct judge {
    judge_operation *operations;
    judge_caller *callers;
    judge_process *processes;
    int64_t pace_ms; /* 0 = no limit is known */
    uint64_t pace_limit;
    judge_client *clients;
    int64_t now_ms, calm_ms, bound_ms;
    uint64_t line;
    int faults, kills, losses;
    bool is_calm;
    char why[400];
};

typedef struct judge_words {
    const char *verb, *a, *b;
    char *words[16];
    int count;
} judge_words;

/* Returns the text of what is wrong. */
const char *judge_wrong(judge *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Return the value of a word KEY=VALUE of the line; "" or 0 when there is none. */
const char *judge_text(const judge_words *l, const char *key);
uint64_t judge_number(const judge_words *l, const char *key);
void judge_copy(char *to, size_t size, const char *from);
judge_operation *judge_find_operation(const judge *j, const char *name);
judge_caller *judge_find_caller(const judge *j, const char *name);
/* Notes that a call of this process has news. NULL is a no-op. */
void judge_pace_news(const judge *j, judge_process *process);
judge_process *judge_pace_process(judge *j, const char *name);
const char *judge_pace_on_sent(judge *j, const judge_words *l);
void judge_pace_free(judge *j);
/* Return whether the history has told the end of the limit in time. */
const char *judge_limits_on_line(judge *j);
void judge_limits_begin(judge *j, judge_caller *c, const judge_words *l);
/* Judges an end with SEGUE_E_TIMEOUT. */
const char *judge_limits_on_timeout(judge *j, const judge_caller *c, judge_operation *op);
const char *judge_logs_on_log(judge *j, judge_operation *op, const judge_words *l);
void judge_logs_want(judge_caller *c, const judge_words *l);
const char *judge_logs_on_heard(judge *j, judge_caller *c, const judge_words *l);
const char *judge_logs_on_hush(judge *j, const judge_words *l);
/* After a fault nobody knows which level a server has, unless the process sets it before
 * anything else. */
void judge_logs_on_fault(judge *j);
/* Judges a line that begins with the name of a client's process. */
const char *judge_on_client(judge *j, const judge_words *l);
void judge_free_clients(judge *j);
/* Judges a line that begins with the name of a caller. */
const char *judge_on_caller(judge *j, const judge_words *l);

#endif
