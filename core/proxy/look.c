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
    "       segue-proxy store rm STORE TASK\n"
    "       segue-proxy store stats STORE [--json]\n"
    "       segue-proxy store verify STORE\n"
    "STORE is a SQLite file, redis://HOST:PORT or postgresql://HOST/DATABASE.\n"
    "RESULT is the JSON object that answers the question KEY.\n";

const char *const look_statuses[LOOK_STATUSES] = {"working", "input_required",
                                                  "completed", "failed", "cancelled"};

int look_fail(const char *what, segue_status status, segue_error *error)
{
    const char *why = error ? segue_error_read(error)->message : "";
    fprintf(stderr, "segue-proxy: %s: %s\n", what,
            *why ? why : segue_status_text(status));
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
    int arguments; /* behind STORE */
    int (*run)(look *l);
} verb;

static const verb VERBS[] = {
    {"ls", 0, look_ls},         {"stats", 0, look_stats}, {"verify", 0, look_verify},
    {"show", 1, look_show},     {"watch", 1, look_watch}, {"cancel", 1, look_cancel},
    {"answer", 3, look_answer}, {"rm", 1, look_rm},
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

int look_open_store(const char *where, segue_store **store)
{
    segue_error *error = NULL;
    if (config_store_kind(where) == STORE_SQLITE && access(where, R_OK | W_OK) != 0) {
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
    if (count != v->arguments + 1)
        return wrong("the number of arguments is wrong", "");
    l.task = given[1];
    l.key = given[2];
    l.result = given[3];
    status = look_open_store(given[0], &l.store);
    if (status)
        return status;
    signal(SIGPIPE, SIG_DFL);
    status = v->run(&l);
    segue_store_free(l.store);
    return fflush(stdout) ? LOOK_FAILED : status;
}
