#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WATCH_PAUSE_MS 200

/* ---- ls, stats ---- */

bool look_is_wanted(const look *l, json task)
{
    return (!l->status || json_is(json_get(task, "status"), l->status)) &&
           (!l->tool || json_is(json_get(task, "tool"), l->tool));
}

static int32_t list_one(void *user, const char *line, size_t len)
{
    look *l = user;
    json task = {line, len};
    if (!look_is_wanted(l, task))
        return 0;
    if (l->json)
        look_print_line(line, len);
    else
        look_print_summary(task);
    return ++l->shown == l->limit;
}

static long long number_of(json object, const char *name)
{
    json value = json_get(object, name);
    return value.n ? strtoll(value.p, NULL, 10) : 0;
}

void look_add_sums(look *l, json task)
{
    bool is_task = json_is(json_get(task, "kind"), "task");
    l->sums.tasks += is_task;
    l->sums.calls += !is_task;
    for (size_t i = 0; i < LOOK_STATUSES; i++)
        l->sums.by_status[i] += json_is(json_get(task, "status"), look_statuses[i]);
    l->sums.segments += number_of(task, "segments");
    l->sums.bytes += number_of(task, "bytes");
    l->sums.unreadable += json_is_true(json_get(task, "unreadable"));
}

static int32_t add_one(void *user, const char *line, size_t len)
{
    look_add_sums(user, (json){line, len});
    return 0;
}

void look_leave_out(look *l)
{
    if (!l->lacks_some)
        fputs("segue-proxy: operations that cannot be read are left out\n", stderr);
    l->lacks_some = true;
}

int look_end(const look *l)
{
    return l->lacks_some ? LOOK_FAULTY : LOOK_OK;
}

int look_list(look *l, segue_store_json_fn fn, void *user)
{
    segue_error *error = NULL;
    segue_status status = segue_store_list(l->store, fn, user, &error);
    if (status != SEGUE_OK && status != SEGUE_E_STORE_CORRUPT)
        return look_fail("the store", status, error);
    segue_error_free(error);
    if (status != SEGUE_OK)
        look_leave_out(l);
    return LOOK_OK;
}

int look_ls(look *l)
{
    int failed = look_list(l, list_one, l);
    return failed ? failed : look_end(l);
}

int look_stats(look *l)
{
    segue_store_stats stats = SEGUE_STORE_STATS_INIT;
    int failed = look_list(l, add_one, l);
    segue_status status = segue_store_read_stats(l->store, &stats);
    if (failed || status != SEGUE_OK)
        return failed ? failed : look_fail("the store", status, NULL);
    const char *form = l->json ? "\"%s\":%lld," : "%s %lld\n";
    if (l->json)
        putchar('{');
    printf(form, "tasks", l->sums.tasks);
    printf(form, "calls", l->sums.calls);
    for (size_t i = 0; i < LOOK_STATUSES; i++)
        printf(form, look_statuses[i], l->sums.by_status[i]);
    printf(form, "segments", l->sums.segments);
    printf(form, "logBytes", l->sums.bytes);
    printf(form, "unreadable", l->sums.unreadable);
    printf(l->json ? "\"%s\":%lld}\n" : form, "storeBytes", (long long)stats.bytes);
    return look_end(l);
}

/* ---- show, watch ---- */

static int32_t show_summary(void *user, const char *line, size_t len)
{
    const look *l = user;
    json task = {line, len};
    if (l->json)
        look_print_line(line, len);
    else
        look_print_summary(task);
    return 0;
}

static int32_t show_entry(void *user, const char *line, size_t len)
{
    look *l = user;
    json entry = {line, len};
    l->after = (unsigned long long)number_of(entry, "seq");
    if (l->json)
        look_print_line(line, len);
    else
        look_print_entry(entry);
    return 0;
}

/* Shows the entries behind the last one. */
static int show_entries(look *l)
{
    segue_error *error = NULL;
    segue_status status = segue_store_entries(l->store, l->task, l->after, show_entry, l,
                                              &l->ended, &error);
    fflush(stdout);
    return status == SEGUE_OK ? LOOK_OK : look_fail(l->task, status, error);
}

int look_show(look *l)
{
    segue_error *error = NULL;
    segue_status status = segue_store_show(l->store, l->task, show_summary, l, &error);
    return status == SEGUE_OK ? show_entries(l) : look_fail(l->task, status, error);
}

/* Ends with the task, or when the reader of the output has gone. */
int look_watch(look *l)
{
    const struct timespec pause = {.tv_nsec = WATCH_PAUSE_MS * 1000000L};
    int failed = look_show(l);
    while (!failed && !l->ended && !ferror(stdout)) {
        nanosleep(&pause, NULL);
        failed = show_entries(l);
    }
    return failed;
}

/* ---- cancel, answer, rerun, rm ---- */

static int command(look *l, const char *line)
{
    segue_error *error = NULL;
    segue_status status =
        segue_store_command(l->store, l->task, line, SEGUE_TO_NUL, &error);
    return status == SEGUE_OK ? LOOK_OK : look_fail(l->task, status, error);
}

int look_cancel(look *l)
{
    return command(l, "{\"cancel\":1}");
}

int look_answer(look *l)
{
    text line = {.p = NULL};
    text_add_str(&line, "{\"answer\":{\"key\":");
    text_add_quoted(&line, l->key, strlen(l->key));
    text_add_str(&line, ",\"response\":");
    text_add_str(&line, l->result);
    text_add_str(&line, "}}");
    int status = line.failed ? LOOK_FAILED : command(l, line.p);
    text_free(&line);
    return status;
}

int look_rerun(look *l)
{
    segue_error *error = NULL;
    segue_status status =
        segue_store_rerun(l->store, l->task, l->after, show_summary, l, &error);
    return status == SEGUE_OK ? LOOK_OK : look_fail(l->task, status, error);
}

int look_rm(look *l)
{
    segue_error *error = NULL;
    segue_status status = segue_store_remove(l->store, l->task, &error);
    return status == SEGUE_OK ? LOOK_OK : look_fail(l->task, status, error);
}

/* ---- verify ---- */

static bool is_final(json entry)
{
    static const char *const kinds[] = {"result", "error", "cancelled", "expired"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_is(json_get(entry, "kind"), kinds[i]))
            return true;
    return false;
}

/* A server that did not hear of a commit may write a second end. Nothing else follows an
 * end. */
static int32_t verify_entry(void *user, const char *line, size_t len)
{
    look *l = user;
    json entry = {line, len};
    unsigned long long seq = (unsigned long long)number_of(entry, "seq");
    bool is_end = is_final(entry);
    l->is_faulty = l->is_faulty || seq <= l->last || (l->has_end && !is_end);
    l->last = seq;
    l->has_end = l->has_end || is_end;
    return 0;
}

static int32_t note_task(void *user, const char *line, size_t len)
{
    text *tasks = user;
    text_add(tasks, line, len);
    text_add(tasks, "", 1);
    return 0;
}

/* task: its summary. */
static int verify_task(look *l, json task)
{
    char *id = json_string(json_get(task, "taskId"));
    segue_error *error = NULL;
    l->last = 0;
    l->has_end = false;
    l->is_faulty = json_is_true(json_get(task, "unreadable"));
    segue_status status =
        id ? segue_store_entries(l->store, id, 0, verify_entry, l, &l->ended, &error)
           : SEGUE_E_NOMEM;
    if (status == SEGUE_E_STORE_CORRUPT)
        l->is_faulty = true;
    bool is_over = status == SEGUE_OK || status == SEGUE_E_STORE_CORRUPT ||
                   status == SEGUE_E_NOT_FOUND; /* it is gone meanwhile */
    if (is_over && status != SEGUE_E_NOT_FOUND &&
        (l->is_faulty || (l->ended && !l->has_end))) {
        printf("%s: the log is not what a server writes\n", id);
        l->sums.unreadable++;
    }
    free(id);
    if (!is_over)
        return look_fail("the store", status, error);
    segue_error_free(error);
    return LOOK_OK;
}

int look_find_faults(look *l)
{
    text tasks = {.p = NULL};
    int failed = look_list(l, note_task, &tasks);
    l->sums.unreadable = 0;
    if (!failed && tasks.failed)
        failed = look_fail("the store", SEGUE_E_NOMEM, NULL);
    for (size_t at = 0; !failed && at < tasks.len; l->shown++) {
        json task = {tasks.p + at, strlen(tasks.p + at)};
        failed = verify_task(l, task);
        at += task.n + 1;
    }
    text_free(&tasks);
    return failed ? failed : l->sums.unreadable ? LOOK_FAULTY : look_end(l);
}

int look_verify(look *l)
{
    int found = look_find_faults(l);
    if (found == LOOK_OK || found == LOOK_FAULTY)
        printf("%lld operations, %lld faulty%s\n", l->shown, l->sums.unreadable,
               l->lacks_some ? ", and others that cannot be read" : "");
    return found;
}
