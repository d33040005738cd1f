/* A batch of files with checkpoints: when the server dies half-way, its client starts it
 * again, and the task goes on behind the last file that was done. It is a server on
 * standard input and output. The third argument may be a number of files, after which it
 * ends itself, once.
 *
 *   client count_words '{"directory":"core/examples/library"}' ./batch tasks.db 2 */
#include <segue/easy.h>

#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct progress { /* the checkpoint */
    uint64_t files, words;
} progress;

typedef struct batch {
    segue_call *call;
    glob_t found;
    progress done;
    bool resumed;
} batch;

static uint64_t die_after;

static void end(batch *b)
{
    globfree(&b->found);
    segue_call_free(b->call); /* fails the call if it has not ended */
    free(b);
}

static uint64_t count_words(const char *path)
{
    char word[256];
    uint64_t words = 0;
    FILE *file = fopen(path, "r");
    while (file && fscanf(file, "%255s", word) == 1)
        words++;
    if (file)
        fclose(file);
    return words;
}

/* Counts one file. on_checkpoint follows, and continues with the next one. */
static void step(batch *b)
{
    const char *path = b->found.gl_pathv[b->done.files];
    uint64_t words = count_words(path);
    b->done.files++;
    b->done.words += words;
    if (segue_call_printf(b->call, "%s: %" PRIu64 " words", strrchr(path, '/') + 1,
                          words) != SEGUE_OK ||
        segue_call_checkpoint(b->call, &b->done, sizeof b->done, NULL) != SEGUE_OK)
        end(b);
}

static void on_checkpoint(void *user, segue_call *call)
{
    batch *b = user;
    if (b->done.files == die_after && !b->resumed)
        _Exit(1); /* as a crash */
    if (b->done.files < b->found.gl_pathc) {
        step(b);
        return;
    }
    if (segue_call_printf(call, "%" PRIu64 " words in %" PRIu64 " files", b->done.words,
                          b->done.files) == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    end(b);
}

static void on_cancel(void *user, segue_call *call)
{
    (void)call;
    end(user);
}

static void on_call(void *user, segue_call *call)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    const char *directory = "core/examples/library";
    char pattern[4096];
    const void *data = NULL;
    size_t len = 0;
    uint64_t segments;
    batch *b = calloc(1, sizeof *b);
    (void)user;
    if (!b) {
        segue_call_free(call);
        return;
    }
    b->call = call;
    segue_call_argument_text(call, "directory", &directory, NULL);
    snprintf(pattern, sizeof pattern, "%s/*.txt", directory);
    if (segue_call_resumed(call, &segments, &data, &len) == SEGUE_OK &&
        len == sizeof b->done) {
        memcpy(&b->done, data, len);
        b->resumed = true;
        segue_call_printf(call, "going on behind file %" PRIu64, b->done.files);
    }
    events.user = b;
    events.on_checkpoint = on_checkpoint;
    events.on_cancel = on_cancel;
    if (glob(pattern, 0, NULL, &b->found) != 0 ||
        segue_call_watch(call, &events) != SEGUE_OK)
        end(b);
    else if (b->done.files < b->found.gl_pathc)
        step(b);
    else
        on_checkpoint(b, call);
}

int main(int argc, char **argv)
{
    const char *tool =
        "{\"name\":\"count_words\",\"description\":\"Counts the words of all "
        "texts in a directory.\",\"inputSchema\":{\"type\":\"object\","
        "\"properties\":{\"directory\":{\"type\":\"string\"}}}}";
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_item_options item = {sizeof item, .on_call = on_call};
    segue_runtime *runtime;
    segue_server *server;
    segue_transport *transport;
    if (argc < 2) {
        fprintf(stderr, "usage: batch STORE [FILES]\n");
        return 2;
    }
    die_after = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    item.flags = SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE;
    item.task = SEGUE_TASK_MUST;
    return segue_runtime_new(NULL, &runtime, NULL) ||
           segue_store_sqlite(argv[1], NULL, &options.store, NULL) ||
           segue_server_new(runtime, &options, &server, NULL) ||
           segue_server_add(server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL) ||
           segue_transport_stdio(runtime, &transport) ||
           segue_server_attach(server, transport, NULL) || segue_runtime_run(runtime);
}
