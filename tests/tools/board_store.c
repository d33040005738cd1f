/* Fills a store for tests and pictures of the task board, like a server that then dies:
 *
 *   board_store STORE TASKS SEGMENTS
 *
 * STORE is a new SQLite file. TASKS tasks have several tools, principals and ends; the
 * newest one has SEGMENTS segments, and the one before it asks a question. Prints the
 * ids of these two. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/log/op.h"
#include "store/store.h"

#define BATCH 1000

static const struct {
    const char *name, *arguments, *message;
} tools[] = {
    {"research", "{\"question\":\"How do glaciers move?\",\"sources\":12}",
     "Reading source 7 of 12"},
    {"transcribe", "{\"file\":\"interview-04.wav\",\"language\":\"en\"}",
     "Minute 31 of 48"},
    {"build_report", "{\"quarter\":\"2026-Q3\",\"format\":\"pdf\"}", "Drawing figure 3"},
    {"migrate", "{\"from\":\"v41\",\"to\":\"v42\"}", "Copying table orders"},
    {"summarise", "{\"path\":\"/notes/2026-11\"}", "Done"},
};
static const char *const people[] = {"ada", "grace", "linus"};
static const char *const lines[] = {
    "Ice flows because it deforms under its own weight.",
    "The flow law of Glen relates the rate of strain to the cube of the stress.",
    "Where the bed is at the melting point, the glacier also slides.",
    "Water below the ice decides how fast it slides.",
    "Measured speeds range from a metre to fifteen kilometres a year.",
};

typedef struct filler {
    segue_store *store;
    segue_store_write writes[BATCH];
    char *texts[BATCH];
    size_t count;
    int64_t now_ms;
    int failed;
} filler;

static void flush(filler *f)
{
    f->failed |= sgi_store_commit(f->store, f->writes, f->count) != SEGUE_OK;
    for (size_t i = 0; i < f->count; i++)
        free(f->texts[i]);
    f->count = 0;
}

static void add(filler *f, uint64_t op, segue_store_write write, char *text)
{
    if (f->count == BATCH)
        flush(f);
    memcpy(write.id, &op, sizeof op);
    write.entry.data = text;
    write.entry.data_len = text ? strlen(text) : 0;
    f->texts[f->count] = text;
    f->writes[f->count++] = write;
}

typedef struct task {
    uint64_t op, seq, segments;
    int64_t at_ms;
} task;

static void append(filler *f, task *t, int32_t kind, int64_t after_ms, char *text)
{
    segue_store_write write = {.kind = SEGUE_STORE_APPEND};
    t->at_ms += after_ms;
    write.entry.kind = kind;
    write.entry.seq = ++t->seq;
    write.entry.at_ms = t->at_ms;
    write.entry.segment = kind == SGI_ENTRY_SEGMENT ? ++t->segments : 0;
    add(f, t->op, write, text);
}

static char *format(const char *form, ...)
{
    char text[1024];
    va_list args;
    va_start(args, form);
    vsnprintf(text, sizeof text, form, args);
    va_end(args);
    return strdup(text);
}

static void begin_task(filler *f, task *t, size_t number)
{
    size_t tool = number % (sizeof tools / sizeof *tools);
    char id[40],
        *data = format("{\"tool\":\"%s\",\"by\":\"%s\",\"params\":{\"name\":\"%s\","
                       "\"arguments\":%s},\"task\":1,\"dialect\":\"X\"}",
                       tools[tool].name, people[number % 3], tools[tool].name,
                       tools[tool].arguments);
    snprintf(id, sizeof id, "T%06zuaVf7XbN3kQ5s", number);
    segue_store_record record = {.task_id = id,
                                 .created_ms = t->at_ms,
                                 .purge_ms = t->at_ms + 86400000,
                                 .data = data,
                                 .data_len = strlen(data)};
    segue_store_write write = {.kind = SEGUE_STORE_CREATE, .record = &record};
    memcpy(record.id, &t->op, sizeof t->op);
    memset(record.principal, (int)(number % 3) + 1, sizeof record.principal);
    flush(f);
    add(f, t->op, write, NULL);
    flush(f); /* before the record is gone */
    free(data);
}

static void append_segments(filler *f, task *t, size_t count)
{
    for (size_t i = 0; i < count; i++)
        append(f, t, SGI_ENTRY_SEGMENT, 180,
               format("{\"type\":\"text\",\"text\":\"%s\"}", lines[t->segments % 5]));
}

static void end_task(filler *f, task *t, size_t number)
{
    segue_store_write end = {.kind = SEGUE_STORE_END, .purge_ms = t->at_ms + 86400000};
    if (number % 9 == 4)
        append(f, t, SGI_ENTRY_ERROR, 400,
               strdup("{\"code\":-32603,\"message\":\"The source cannot be reached\"}"));
    else if (number % 13 == 5)
        append(f, t, SGI_ENTRY_CANCELLED, 400, strdup("{}"));
    else
        append(f, t, SGI_ENTRY_RESULT, 400, strdup("{}"));
    add(f, t->op, end, NULL);
}

/* A task that its client has left for a time. */
static void fill_long(filler *f, task *t, size_t segments)
{
    append(f, t, SGI_ENTRY_STATUS, 90,
           strdup("{\"statusMessage\":\"Reading the sources\"}"));
    append_segments(f, t, segments / 2);
    append(f, t, SGI_ENTRY_PRESENCE, 900, strdup("{\"away\":1}"));
    append_segments(f, t, segments / 4);
    append(f, t, SGI_ENTRY_PRESENCE, 300, strdup("{\"away\":0}"));
    append(f, t, SGI_ENTRY_CHECKPOINT, 50, strdup("source 9"));
    append_segments(f, t, segments - segments / 2 - segments / 4);
    end_task(f, t, 0);
}

static void fill_asking(filler *f, task *t)
{
    append(f, t, SGI_ENTRY_STATUS, 60,
           strdup("{\"statusMessage\":\"Checking the plan\"}"));
    append_segments(f, t, 3);
    append(
        f, t, SGI_ENTRY_INPUT_ASK, 700,
        strdup("{\"key\":\"input-1\",\"method\":\"elicitation/create\",\"params\":{"
               "\"mode\":\"form\",\"message\":\"The table orders is in use. When may I "
               "lock it?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
               "\"window\":{\"type\":\"string\",\"title\":\"Window\",\"enum\":[\"now\","
               "\"tonight\",\"weekend\"]},\"minutes\":{\"type\":\"integer\",\"title\":"
               "\"Longest lock in minutes\",\"minimum\":1,\"maximum\":60,\"default\":5},"
               "\"notify\":{\"type\":\"boolean\",\"title\":\"Tell the team\"}},"
               "\"required\":[\"window\"]}}}"));
}

static void fill(filler *f, size_t tasks, size_t segments)
{
    for (size_t i = 0; i < tasks; i++) {
        size_t back = tasks - i; /* 1 = the newest task */
        task t = {.op = i + 1};
        t.at_ms = f->now_ms - (int64_t)(back * back) * 1700 - 40000;
        if (tasks > 1000)
            t.at_ms = f->now_ms - (int64_t)back * 7000 - 40000;
        size_t number = back == 1 ? 0 : back == 2 ? 3 : i % 1000000 + 1;
        begin_task(f, &t, back <= 2 ? 999990 + number : number);
        if (back == 1) {
            fill_long(f, &t, segments);
        } else if (back == 2) {
            fill_asking(f, &t);
        } else {
            append(f, &t, SGI_ENTRY_STATUS, 70,
                   format("{\"statusMessage\":\"%s\"}", tools[number % 5].message));
            append_segments(f, &t, number % 8);
            if (back > 5)
                end_task(f, &t, number);
        }
    }
    flush(f);
}

int main(int argc, char **argv)
{
    filler f = {.now_ms = (int64_t)time(NULL) * 1000};
    char why[256] = "";
    if (argc != 4) {
        fprintf(stderr, "usage: %s STORE TASKS SEGMENTS\n", argv[0]);
        return 2;
    }
    if (sgi_store_sqlite_new(argv[1], NULL, &f.store, why, sizeof why) != SEGUE_OK) {
        fprintf(stderr, "board_store: %s\n", why);
        return 1;
    }
    fill(&f, (size_t)atol(argv[2]), (size_t)atol(argv[3]));
    sgi_store_unref(f.store);
    printf("T999990aVf7XbN3kQ5s T999993aVf7XbN3kQ5s\n");
    return f.failed;
}
