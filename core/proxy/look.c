#include "look.h"

#include "service.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char USAGE[] =
    "usage: segue-proxy store ls STORE [--status STATUS] [--tool TOOL] [--limit N] "
    "[--json]\n"
    "       segue-proxy store show STORE TASK [--after N] [--json]\n"
    "       segue-proxy store watch STORE TASK [--after N] [--json]\n"
    "       segue-proxy store cancel STORE TASK\n"
    "       segue-proxy store answer STORE TASK KEY RESULT\n"
    "       segue-proxy store rerun STORE TASK [--after N] [--json]\n"
    "       segue-proxy store rm STORE TASK\n"
    "       segue-proxy store stats STORE [--json]\n"
    "       segue-proxy store verify STORE\n"
    "       segue-proxy store export STORE [FILE] [--json]\n"
    "       segue-proxy store import STORE [FILE] [--json]\n"
    "       segue-proxy store migrate STORE TO [--json]\n"
    "       segue-proxy store compact STORE [--json]\n"
    "       segue-proxy store retention STORE --older-than TIME [--status STATUS] "
    "[--tool TOOL] [--dry-run] [--json]\n"
    "STORE and TO are SQLite files, redis://HOST:PORT or postgresql://HOST/DATABASE.\n"
    "RESULT is the JSON object that answers the question KEY.\n"
    "FILE is an archive; without it, standard input or output is used.\n"
    "TIME is a number with s, m, h or d, for example 30d.\n";

const char *const look_statuses[LOOK_STATUSES] = {"working", "input_required",
                                                  "completed", "failed", "cancelled"};

int look_fail(const char *what, segue_status status, segue_error *error)
{
    const char *why = error ? segue_error_read(error)->message : "";
    if (!*why)
        why = segue_status_text(status);
    fputs("segue-proxy: ", stderr);
    look_print_safely(stderr, what, strlen(what));
    fputs(": ", stderr);
    look_print_safely(stderr, why, strlen(why));
    putc('\n', stderr);
    segue_error_free(error);
    return LOOK_FAILED;
}

static int wrong(const char *why, const char *what)
{
    fprintf(stderr, "segue-proxy: %s%s\n%s", why, what, USAGE);
    return LOOK_WRONG;
}

/* ---- arguments ---- */

typedef struct verb {
    const char *name;
    int least, most; /* numbers of arguments behind STORE */
    int (*run)(look *l);
    bool makes; /* STORE need not exist */
} verb;

static const verb VERBS[] = {
    {"ls", 0, 0, look_ls, false},           {"stats", 0, 0, look_stats, false},
    {"verify", 0, 0, look_verify, false},   {"show", 1, 1, look_show, false},
    {"watch", 1, 1, look_watch, false},     {"cancel", 1, 1, look_cancel, false},
    {"answer", 3, 3, look_answer, false},   {"rm", 1, 1, look_rm, false},
    {"export", 0, 1, look_export, false},   {"import", 0, 1, look_import, true},
    {"migrate", 1, 1, look_migrate, false}, {"retention", 0, 0, look_retention, false},
    {"compact", 0, 0, look_compact, false}, {"rerun", 1, 1, look_rerun, false},
};

static const verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof VERBS / sizeof *VERBS; i++)
        if (!strcmp(VERBS[i].name, name))
            return &VERBS[i];
    return NULL;
}

static bool take_count(const char *value, long long *count)
{
    char *end = NULL;
    errno = 0;
    *count = strtoll(value, &end, 10);
    return end != value && !*end && !errno && *count >= 0;
}

/* Reads a time such as 90s or 30d. */
static bool take_time(const char *value, long long *seconds)
{
    static const struct {
        char letter;
        long long seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end = NULL;
    errno = 0;
    *seconds = strtoll(value, &end, 10);
    if (end == value || errno || *seconds < 0 || !*end || end[1])
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].letter == *end && *seconds <= LOOK_TIME_MAX / units[i].seconds) {
            *seconds *= units[i].seconds;
            return true;
        }
    return false;
}

static bool is_status(const char *value)
{
    for (size_t i = 0; i < LOOK_STATUSES; i++)
        if (!strcmp(look_statuses[i], value))
            return true;
    return false;
}

/* Takes an option with a value. Returns false for one that does not exist. */
static bool take_option(look *l, const char *name, const char *value, bool *valid)
{
    long long after = 0;
    *valid = true;
    if (!strcmp(name, "--status")) {
        l->status = value;
        *valid = is_status(value);
    } else if (!strcmp(name, "--tool")) {
        l->tool = value;
    } else if (!strcmp(name, "--limit")) {
        *valid = take_count(value, &l->limit);
    } else if (!strcmp(name, "--older-than")) {
        l->has_age = *valid = take_time(value, &l->older_s);
    } else if (!strcmp(name, "--after")) {
        *valid = take_count(value, &after);
        l->after = (unsigned long long)after;
    } else {
        return false;
    }
    return true;
}

/* Stores the arguments that are no options in given[]. Returns LOOK_OK or LOOK_WRONG. */
static int take_arguments(look *l, int argc, char **argv, const char **given, int *count)
{
    for (int at = 0; at < argc; at++) {
        bool valid = true;
        if (!strcmp(argv[at], "--json")) {
            l->json = true;
        } else if (!strcmp(argv[at], "--dry-run")) {
            l->dry_run = true;
        } else if (strncmp(argv[at], "--", 2) != 0) {
            if (*count == 4)
                return wrong("there are too many arguments: ", argv[at]);
            given[(*count)++] = argv[at];
        } else if (at + 1 == argc) {
            return wrong("this option is unknown, or its value is missing: ", argv[at]);
        } else if (!take_option(l, argv[at], argv[at + 1], &valid)) {
            return wrong("unknown option ", argv[at]);
        } else if (!valid) {
            return wrong("this is no value of that option: ", argv[at + 1]);
        } else {
            at++;
        }
    }
    return LOOK_OK;
}

int look_open_store(const char *where, bool makes, segue_store **store)
{
    segue_error *error = NULL;
    if (!makes && config_store_kind(where) == STORE_SQLITE &&
        access(where, R_OK | W_OK) != 0) {
        fprintf(stderr, "segue-proxy: %s: %s\n", where, strerror(errno));
        return LOOK_FAILED;
    }
    segue_status status = store_open(where, "", store, &error);
    return status == SEGUE_OK ? LOOK_OK : look_fail(where, status, error);
}

int look_run(int argc, char **argv)
{
    look l = {.store = NULL};
    const char *given[4] = {NULL};
    int count = 0;
    const verb *v = argc > 1 ? find_verb(argv[1]) : NULL;
    if (!v && argc > 1 && !strcmp(argv[1], "--help"))
        return fputs(USAGE, stdout) < 0 ? LOOK_FAILED : LOOK_OK;
    if (!v)
        return wrong("this is none of the commands: ", argc > 1 ? argv[1] : "(none)");
    int status = take_arguments(&l, argc - 2, argv + 2, given, &count);
    if (status)
        return status;
    if (count < v->least + 1 || count > v->most + 1)
        return wrong("the number of arguments is wrong", "");
    if (v->run == look_retention && !l.has_age)
        return wrong("this option is missing: ", "--older-than");
    l.where = given[0];
    l.task = given[1];
    l.key = given[2];
    l.result = given[3];
    status = look_open_store(given[0], v->makes, &l.store);
    if (status)
        return status;
    signal(SIGPIPE, SIG_DFL);
    status = v->run(&l);
    segue_store_free(l.store);
    return fflush(stdout) ? LOOK_FAILED : status;
}
