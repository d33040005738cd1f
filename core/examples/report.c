/* A generator of reports: each chapter is a segment, so a client shows the first one
 * while the second one is written. The numbers come as a structured result at the end.
 * It is a server on standard input and output.
 *
 *   client write_report '{"directory":"core/examples/library"}' ./report */
#include <segue/easy.h>

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct counts {
    int files, lines, words;
} counts;

/* Counts the lines and words of a text, and keeps its first line. */
static int read_text(const char *path, counts *c, char first[256])
{
    char line[256];
    FILE *file = fopen(path, "r");
    c->lines = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (!c->lines++)
            strcpy(first, line);
        for (const char *at = line; *at; at++)
            c->words += !isspace((unsigned char)*at) &&
                        (at == line || isspace((unsigned char)at[-1]));
    }
    return file ? fclose(file) : -1;
}

static segue_status write_chapters(segue_call *call, const glob_t *found)
{
    counts c = {0};
    segue_status status = SEGUE_OK;
    for (size_t i = 0; i < found->gl_pathc && status == SEGUE_OK; i++) {
        char first[256] = "";
        const char *path = found->gl_pathv[i], *name = strrchr(path, '/') + 1;
        if (read_text(path, &c, first) != 0)
            return SEGUE_E_IO;
        status = segue_call_printf(call, "# %s: %d lines\n%s", name, c.lines, first);
        segue_call_progress(call, (double)++c.files, (double)found->gl_pathc, name, NULL);
    }
    char *json = NULL;
    if (status == SEGUE_OK)
        status = segue_json_pairs(&json, "files=%d words=%d", c.files, c.words);
    if (status == SEGUE_OK)
        status =
            segue_call_set_field(call, "structuredContent", json, SEGUE_TO_NUL, NULL);
    free(json);
    return status;
}

static void write_report(void *user, segue_call *call)
{
    char pattern[4096];
    const char *directory = "core/examples/library";
    glob_t found = {0};
    (void)user;
    segue_call_argument_text(call, "directory", &directory, NULL);
    snprintf(pattern, sizeof pattern, "%s/*.txt", directory);
    if (glob(pattern, 0, NULL, &found) != 0)
        segue_call_fail(call, 1, "there is no text in this directory", NULL, 0, NULL);
    else if (write_chapters(call, &found) == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    globfree(&found);
    segue_call_free(call); /* fails the call if it has not ended */
}

int main(void)
{
    const char *tool =
        "{\"name\":\"write_report\",\"description\":\"Writes a report about "
        "the texts in a directory.\",\"inputSchema\":{\"type\":\"object\","
        "\"properties\":{\"directory\":{\"type\":\"string\"}}}}";
    segue_item_options item = {sizeof item, .on_call = write_report};
    segue_runtime *runtime;
    segue_server *server;
    segue_transport *transport;
    item.flags = SEGUE_TOOL_INCREMENTAL;
    item.task = SEGUE_TASK_MAY;
    return segue_runtime_new(NULL, &runtime, NULL) ||
           segue_server_new(runtime, NULL, &server, NULL) ||
           segue_server_add(server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL) ||
           segue_transport_stdio(runtime, &transport) ||
           segue_server_attach(server, transport, NULL) || segue_runtime_run(runtime);
}
