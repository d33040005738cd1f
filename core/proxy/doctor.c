#include "doctor.h"

#include "look.h"
#include "service.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char USAGE[] =
    "usage: segue-proxy doctor STORE\n"
    "       segue-proxy doctor [--timeout TIME] [options] URL\n"
    "       segue-proxy doctor [--timeout TIME] [options] -- COMMAND [ARGUMENT...]\n"
    "STORE is a SQLite file, redis://HOST:PORT or postgresql://HOST/DATABASE. --timeout "
    "says how long to wait for a server (5s). The other options are those of segue-proxy "
    "--help.\n";

/* A task that has said nothing for this long may need somebody. */
#define QUIET_S 86400
/* At most this many tasks are named. */
#define NAMED 5

typedef struct doctor {
    look look;
    const char *where;
    char quiet_before[LOOK_TIME_SIZE];
    long long quiet, asking;
    text named; /* lines about the first quiet tasks */
} doctor;

bool doctor_takes(int argc, char **argv)
{
    if (argc < 2 || !strcmp(argv[1], "--help"))
        return true;
    return argv[1][0] != '-' && strncmp(argv[1], "http://", 7) != 0 &&
           strncmp(argv[1], "https://", 8) != 0;
}

/* A person waits for the answer, so the patience with a server is short. `segue-proxy
 * --check` has that of a start. */
char **doctor_server_arguments(int *argc, char **argv)
{
    static const char TIMEOUT[] = "--timeout";
    static char check[] = "--check", patience[] = "--start-timeout", standard[] = "5s";
    int count = 0;
    char **made = calloc(2 * (size_t)*argc + 3, sizeof *made);
    if (!made)
        return NULL;
    made[count++] = argv[0];
    made[count++] = check;
    made[count++] = patience;
    made[count++] = standard;
    bool is_option = true;
    for (int at = 2; at < *argc; at++) {
        is_option = is_option && strcmp(argv[at], "--") != 0;
        bool is_patience = is_option && !strncmp(argv[at], TIMEOUT, sizeof TIMEOUT - 1);
        char *value = is_patience ? argv[at] + sizeof TIMEOUT - 1 : NULL;
        if (!value || (*value && *value != '=')) {
            made[count++] = argv[at];
            continue;
        }
        made[count++] = patience;
        if (*value)
            made[count++] = value + 1;
    }
    *argc = count;
    return made;
}

static void name_task(doctor *d, json task, const char *what)
{
    if (d->quiet + d->asking > NAMED)
        return;
    char *id = json_string(json_get(task, "taskId"));
    char *tool = json_string(json_get(task, "tool"));
    char *at = json_string(json_get(task, "lastUpdatedAt"));
    text_add_format(&d->named, "  | %s %s, %s since %s\n", id ? id : "?",
                    tool ? tool : "?", what, at ? at : "?");
    free(id);
    free(tool);
    free(at);
}

static int32_t examine(void *user, const char *line, size_t len)
{
    doctor *d = user;
    json task = {line, len}, status = json_get(task, "status");
    char *at = json_string(json_get(task, "lastUpdatedAt"));
    bool is_quiet = at && strcmp(at, d->quiet_before) < 0;
    free(at);
    look_add_sums(&d->look, task);
    if (is_quiet && json_is(status, "working")) {
        d->quiet++;
        name_task(d, task, "nothing");
    } else if (is_quiet && json_is(status, "input_required")) {
        d->asking++;
        name_task(d, task, "no answer");
    }
    return 0;
}

static void print_store(const doctor *d)
{
    static const char *const kinds[] = {[STORE_SQLITE] = "SQLite",
                                        [STORE_REDIS] = "Redis",
                                        [STORE_POSTGRES] = "PostgreSQL"};
    segue_store_stats stats = SEGUE_STORE_STATS_INIT;
    segue_store_read_stats(d->look.store, &stats);
    printf("%s: a store of Segue, in %s\n", d->where, kinds[config_store_kind(d->where)]);
    printf("  has: %lld tasks, %lld calls, %lld segments\n", d->look.sums.tasks,
           d->look.sums.calls, d->look.sums.segments);
    printf("  tasks and calls:");
    for (size_t i = 0; i < LOOK_STATUSES; i++)
        printf("%s %lld %s", i ? "," : "", d->look.sums.by_status[i], look_statuses[i]);
    printf("\n");
    if (stats.bytes >= 0)
        printf("  size: %lld bytes, of which logs have %lld\n", (long long)stats.bytes,
               d->look.sums.bytes);
}

/* Returns the number of findings. */
static int print_findings(const doctor *d)
{
    int findings = 0;
    if (d->look.sums.unreadable && ++findings)
        printf("  wrong: %lld logs are not what a server writes\n"
               "  to mend this: look at them (store show), and delete them (store rm)\n",
               d->look.sums.unreadable);
    if (d->look.lacks_some && ++findings)
        printf("  wrong: there are records that cannot be read\n"
               "  to mend this: restore a backup, or copy all others into a new store "
               "(store migrate)\n");
    if (d->quiet && ++findings)
        printf("  look at this: %lld tasks work and have said nothing for a day\n"
               "  to mend this: start a server of the store, which goes on with them, or "
               "cancel them (store cancel)\n",
               d->quiet);
    if (d->asking && ++findings)
        printf("  look at this: %lld tasks have waited for an answer for a day\n"
               "  to mend this: answer (store answer) or cancel them (store cancel)\n",
               d->asking);
    for (size_t at = 0; at < d->named.len;) {
        size_t len = strcspn(d->named.p + at, "\n");
        look_print_safely(stdout, d->named.p + at, len);
        putchar('\n');
        at += len + 1;
    }
    if (!findings)
        printf("  ok: all logs are what a server writes\n");
    return findings;
}

int doctor_run(int argc, char **argv)
{
    doctor d = {.where = argv[1]};
    if (argc == 2 && !strcmp(argv[1], "--help"))
        return fputs(USAGE, stdout) < 0 ? LOOK_FAILED : LOOK_OK;
    if (argc != 2) {
        fprintf(stderr, "segue-proxy: the number of arguments is wrong\n%s", USAGE);
        return LOOK_WRONG;
    }
    int failed = look_open_store(d.where, false, &d.look.store);
    if (failed)
        return failed;
    signal(SIGPIPE, SIG_DFL);
    look_write_time(d.quiet_before, QUIET_S);
    failed = look_list(&d.look, examine, &d);
    if (!failed && d.named.failed)
        failed = look_fail(d.where, SEGUE_E_NOMEM, NULL);
    if (!failed) {
        print_store(&d);
        int verified = look_find_faults(&d.look);
        failed = verified == LOOK_OK || verified == LOOK_FAULTY
                     ? print_findings(&d) ? LOOK_FAULTY : LOOK_OK
                     : verified;
    }
    text_free(&d.named);
    segue_store_free(d.look.store);
    return fflush(stdout) ? LOOK_FAILED : failed;
}
