/* The commands that move operations between stores and archives, `retention`, which
 * deletes the old ones, and `compact`. */
#include "look.h"

#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_operation(const char *line, size_t len)
{
    static const char head[] = "{\"operation\":";
    return len >= sizeof head - 1 && !memcmp(line, head, sizeof head - 1);
}

/* ---- export ---- */

typedef struct writing {
    FILE *out;
    look_progress progress;
} writing;

/* The number of operations in a store; 0 = not known. */
static long long operations_of(segue_store *store)
{
    segue_store_stats stats = SEGUE_STORE_STATS_INIT;
    segue_store_read_stats(store, &stats);
    return stats.operations > 0 ? stats.operations : 0;
}

static int32_t write_line(void *user, const char *line, size_t len)
{
    writing *w = user;
    if (is_operation(line, len)) {
        w->progress.part++;
        look_progress_step(&w->progress);
    }
    return fwrite(line, 1, len, w->out) != len || putc('\n', w->out) == EOF;
}

static int write_archive(look *l, FILE *out)
{
    writing w = {.out = out};
    segue_error *error = NULL;
    look_progress_begin(&w.progress, operations_of(l->store));
    segue_status status = segue_store_export(l->store, write_line, &w, &error);
    bool is_written =
        !ferror(out) && !fflush(out) && (out == stdout || !fsync(fileno(out)));
    bool lacks_some = status == SEGUE_E_STORE_CORRUPT;
    if ((status == SEGUE_OK || lacks_some) && is_written) {
        look_progress_end(&w.progress);
        segue_error_free(error);
        if (lacks_some)
            look_leave_out(l);
        if (l->json)
            printf("{\"operations\":%lld,\"leftOut\":%s}\n", w.progress.operations,
                   lacks_some ? "true" : "false");
        return lacks_some ? LOOK_FAULTY : LOOK_OK;
    }
    if (status != SEGUE_OK && status != SEGUE_E_CANCELLED)
        return look_fail("the store", status, error);
    segue_error_free(error);
    fprintf(stderr, "segue-proxy: the archive cannot be written: %s\n", strerror(errno));
    return LOOK_FAILED;
}

static int fail_file(const char *path)
{
    fprintf(stderr, "segue-proxy: %s: %s\n", path, strerror(errno));
    return LOOK_FAILED;
}

/* The file gets its name when it is whole. Others must not read it. */
static int write_file(look *l, const char *path)
{
    text part = {.p = NULL};
    text_add_str(&part, path);
    text_add_str(&part, ".XXXXXX");
    if (part.failed) {
        text_free(&part);
        return look_fail(path, SEGUE_E_NOMEM, NULL);
    }
    int fd = mkostemp(part.p, O_CLOEXEC); /* only its owner may read it */
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    int result = out ? write_archive(l, out) : fail_file(part.p);
    bool is_whole = result == LOOK_OK || result == LOOK_FAULTY;
    if (out && fclose(out) && is_whole)
        result = fail_file(part.p);
    else if (is_whole && rename(part.p, path))
        result = fail_file(path);
    if (fd >= 0 && result != LOOK_OK && result != LOOK_FAULTY)
        unlink(part.p);
    text_free(&part);
    return result;
}

static bool is_standard(const char *file)
{
    return !file || !strcmp(file, "-");
}

int look_export(look *l)
{
    if (l->json && is_standard(l->task)) {
        fputs("segue-proxy: --json needs a FILE: standard output has the archive\n",
              stderr);
        return LOOK_WRONG;
    }
    return is_standard(l->task) ? write_archive(l, stdout) : write_file(l, l->task);
}

/* ---- import, migrate ---- */

typedef struct reading {
    segue_store_importer *importer;
    long long lines;
    look_progress progress;
    bool counts_operations; /* the progress has a part for each operation */
    char *task;             /* id of the operation whose lines come; NULL = none */
    int failed;
} reading;

static int32_t take_line(void *user, const char *line, size_t len)
{
    reading *r = user;
    segue_error *error = NULL;
    r->lines++;
    r->progress.part +=
        r->counts_operations ? is_operation(line, len) : (long long)len + 1;
    segue_status status = segue_store_importer_add(r->importer, line, len, &error);
    if (status == SEGUE_OK && is_operation(line, len)) {
        free(r->task);
        r->task =
            json_string(json_get(json_get((json){line, len}, "operation"), "taskId"));
        look_progress_step(&r->progress);
    }
    if (status == SEGUE_OK)
        return 0;
    bool is_over = status == SEGUE_E_INVALID || status == SEGUE_E_NOMEM;
    char what[48];
    snprintf(what, sizeof what, "line %lld of the archive", r->lines);
    r->failed = look_fail(!is_over && r->task ? r->task : what, status, error);
    return is_over;
}

static void read_lines(reading *r, FILE *in)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while ((len = getline(&line, &room, in)) >= 0)
        if (take_line(r, line, (size_t)len - (len && line[len - 1] == '\n')))
            break;
    if (ferror(in))
        r->failed = fail_file("the archive");
    free(line);
}

static void print_counts(const look *l, uint64_t made, uint64_t present,
                         uint64_t left_out)
{
    if (l->json) {
        printf("{\"made\":%llu,\"present\":%llu,\"leftOut\":%llu}\n",
               (unsigned long long)made, (unsigned long long)present,
               (unsigned long long)left_out);
        return;
    }
    printf("%llu operations made, %llu were there already", (unsigned long long)made,
           (unsigned long long)present);
    if (left_out)
        printf(", %llu left out", (unsigned long long)left_out);
    putchar('\n');
}

/* Says what has been made, and frees the importer. */
static int end_reading(const look *l, reading *r)
{
    uint64_t made = 0, present = 0, left_out = 0;
    segue_status status =
        segue_store_importer_close(r->importer, &made, &present, &left_out);
    free(r->task);
    if (!r->failed)
        look_progress_end(&r->progress);
    print_counts(l, made, present, left_out);
    if (!r->failed && status == SEGUE_E_INCOMPLETE)
        fputs("segue-proxy: the archive has no end: it is not whole\n", stderr);
    return r->failed ? r->failed : status == SEGUE_OK ? LOOK_OK : LOOK_FAILED;
}

/* The size of a regular file; 0 = it is none. */
static long long size_of(FILE *in)
{
    struct stat known;
    return !fstat(fileno(in), &known) && S_ISREG(known.st_mode) ? known.st_size : 0;
}

static int begin_reading(reading *r, segue_store *store)
{
    segue_status status = segue_store_importer_new(store, &r->importer);
    return status == SEGUE_OK ? LOOK_OK : look_fail("the store", status, NULL);
}

int look_import(look *l)
{
    reading r = {.importer = NULL};
    FILE *in = is_standard(l->task) ? stdin : fopen(l->task, "re");
    int failed = in ? begin_reading(&r, l->store) : fail_file(l->task);
    if (!failed) {
        look_progress_begin(&r.progress, size_of(in));
        read_lines(&r, in);
        failed = end_reading(l, &r);
    }
    if (in && in != stdin)
        fclose(in);
    return failed;
}

static int copy(look *l, reading *r)
{
    segue_error *error = NULL;
    r->counts_operations = true;
    look_progress_begin(&r->progress, operations_of(l->store));
    segue_status status = segue_store_export(l->store, take_line, r, &error);
    bool lacks_some = status == SEGUE_E_STORE_CORRUPT;
    if (status != SEGUE_OK && status != SEGUE_E_CANCELLED && !lacks_some)
        r->failed = look_fail("the store", status, error);
    else
        segue_error_free(error);
    int result = end_reading(l, r);
    if (lacks_some)
        look_leave_out(l);
    return lacks_some && result == LOOK_OK ? LOOK_FAULTY : result;
}

int look_migrate(look *l)
{
    reading r = {.importer = NULL};
    segue_store *to = NULL;
    int failed = look_open_store(l->task, true, &to);
    if (!failed)
        failed = begin_reading(&r, to);
    if (!failed)
        failed = copy(l, &r);
    if (to)
        segue_store_free(to);
    return failed;
}

/* ---- retention ---- */

typedef struct old_ones {
    look *l;
    char before[LOOK_TIME_SIZE];
    text tasks; /* their ids, each with a NUL behind it */
    look_progress progress;
} old_ones;

static int32_t note_old(void *user, const char *line, size_t len)
{
    old_ones *old = user;
    json task = {line, len}, status = json_get(task, "status");
    bool is_open = json_is(status, "working") || json_is(status, "input_required");
    char *at = json_string(json_get(task, "lastUpdatedAt"));
    char *id = json_string(json_get(task, "taskId"));
    bool failed = !at || !id;
    /* the texts of times have one form, so their order is that of the times */
    if (!failed && !is_open && look_is_wanted(old->l, task) &&
        strcmp(at, old->before) < 0) {
        old->progress.whole++;
        text_add(&old->tasks, id, strlen(id) + 1);
    }
    free(at);
    free(id);
    old->tasks.failed = old->tasks.failed || failed;
    return old->tasks.failed;
}

/* An operation that is gone meanwhile is no failure. */
static int remove_one(old_ones *old, const char *id)
{
    look *l = old->l;
    segue_error *error = NULL;
    segue_status status =
        l->dry_run ? SEGUE_OK : segue_store_remove(l->store, id, &error);
    if (status != SEGUE_OK && status != SEGUE_E_NOT_FOUND)
        return look_fail(id, status, error);
    segue_error_free(error);
    if (status == SEGUE_OK && !l->dry_run) {
        l->shown++;
        old->progress.part++;
        look_progress_step(&old->progress);
    }
    if (l->dry_run) {
        look_print_safely(stdout, id, strlen(id));
        putchar('\n');
    }
    return LOOK_OK;
}

int look_retention(look *l)
{
    old_ones old = {.l = l};
    look_write_time(old.before, l->older_s);
    look_progress_begin(&old.progress, 0);
    int failed = look_list(l, note_old, &old);
    if (!failed && old.tasks.failed)
        failed = look_fail("the store", SEGUE_E_NOMEM, NULL);
    for (size_t at = 0; !failed && at < old.tasks.len; at += strlen(old.tasks.p + at) + 1)
        failed = remove_one(&old, old.tasks.p + at);
    if (!failed && !l->dry_run) {
        look_progress_end(&old.progress);
        printf(l->json ? "{\"deleted\":%lld}\n" : "%lld operations deleted\n", l->shown);
    }
    text_free(&old.tasks);
    return failed ? failed : look_end(l);
}

/* ---- compact ---- */

static long long bytes_of(segue_store *store)
{
    segue_store_stats stats = SEGUE_STORE_STATS_INIT;
    segue_store_read_stats(store, &stats);
    return (long long)stats.bytes;
}

int look_compact(look *l)
{
    static const char *const why[] = {
        [STORE_REDIS] = "Redis gives the room of deleted tasks back by itself",
        [STORE_POSTGRES] =
            "PostgreSQL uses the room of deleted tasks again by itself; to "
            "give it back to the system, run VACUUM FULL there"};
    segue_error *error = NULL;
    long long before = bytes_of(l->store);
    segue_status status = segue_store_compact(l->store, &error);
    if (status == SEGUE_E_UNSUPPORTED) {
        segue_error_free(error);
        fprintf(stderr, "segue-proxy: %s\n", why[config_store_kind(l->where)]);
        return LOOK_FAILED;
    }
    if (status != SEGUE_OK)
        return look_fail("the store", status, error);
    printf(l->json ? "{\"before\":%lld,\"after\":%lld}\n"
                   : "%lld bytes before, %lld bytes now\n",
           before, bytes_of(l->store));
    return LOOK_OK;
}
