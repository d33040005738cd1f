/* Answers from documents (RAG without a network): the sentences of a directory are
 * scored by the words of the question, rare words count more, and the best ones are
 * streamed, each with a link to its file. It is a server on standard input and output;
 * its argument is the directory.
 *
 *   client ask '{"question":"How wrong is a clock?"}' ./answer core/examples/library */
#include <segue/easy.h>

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 3 /* sentences of an answer */
#define MOST_LINES 1000

typedef struct sentence {
    char text[256];
    const char *path;
    int score;
} sentence;

static sentence lines[MOST_LINES];
static size_t count;

/* Copies the next word of at least three letters in small letters. Returns what follows;
 * NULL = there is no further word. */
static const char *next_word(const char *text, char word[64])
{
    for (;;) {
        size_t len = 0;
        while (*text && !isalpha((unsigned char)*text))
            text++;
        if (!*text)
            return NULL;
        for (; isalpha((unsigned char)*text); text++)
            if (len < 63)
                word[len++] = (char)tolower((unsigned char)*text);
        word[len] = '\0';
        if (len >= 3)
            return text;
    }
}

static int has_word(const char *text, const char *wanted)
{
    char word[64];
    while ((text = next_word(text, word)))
        if (!strcmp(word, wanted))
            return 1;
    return 0;
}

static void score_lines(const char *question)
{
    char word[64];
    for (size_t i = 0; i < count; i++)
        lines[i].score = 0;
    while ((question = next_word(question, word))) {
        int uses = 0;
        for (size_t i = 0; i < count; i++)
            uses += has_word(lines[i].text, word);
        for (size_t i = 0; i < count; i++)
            lines[i].score += has_word(lines[i].text, word) ? 1000 / uses : 0;
    }
}

static sentence *take_best(void)
{
    sentence *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (lines[i].score > 0 && (!best || lines[i].score > best->score))
            best = &lines[i];
    return best;
}

static segue_status send_link(segue_call *call, const char *path)
{
    char *json = NULL;
    segue_content *content = NULL;
    char uri[4200], *whole = realpath(path, NULL);
    if (!whole)
        return SEGUE_E_IO;
    snprintf(uri, sizeof uri, "file://%s", whole);
    free(whole);
    segue_status status = segue_json_pairs(&json, "type=%s uri=%s name=%s",
                                           "resource_link", uri, strrchr(path, '/') + 1);
    if (status == SEGUE_OK)
        status = segue_content_new(segue_call_runtime(call), &content);
    if (status == SEGUE_OK)
        status = segue_content_add_json(content, json, SEGUE_TO_NUL, NULL);
    if (status == SEGUE_OK)
        status = segue_call_send(call, content, NULL);
    segue_content_free(content);
    free(json);
    return status;
}

static void ask(void *user, segue_call *call)
{
    const char *question = "";
    segue_status status = SEGUE_OK;
    sentence *best;
    (void)user;
    segue_call_argument_text(call, "question", &question, NULL);
    score_lines(question);
    for (int i = 0; i < MOST && status == SEGUE_OK && (best = take_best()); i++) {
        best->score = 0;
        status = segue_call_send_text(call, best->text, strlen(best->text), NULL);
        if (status == SEGUE_OK)
            status = send_link(call, best->path);
    }
    if (status == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void read_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    while (file && count < MOST_LINES &&
           fgets(lines[count].text, sizeof lines[count].text, file)) {
        lines[count].text[strcspn(lines[count].text, "\n")] = '\0';
        lines[count++].path = path;
    }
    if (file)
        fclose(file);
}

int main(int argc, char **argv)
{
    const char *tool =
        "{\"name\":\"ask\",\"description\":\"Answers a question about bees, "
        "bread, bridges, clocks or tides.\",\"inputSchema\":{\"type\":"
        "\"object\",\"properties\":{\"question\":{\"type\":\"string\"}}}}";
    segue_item_options item = {sizeof item, .on_call = ask};
    segue_runtime *runtime;
    segue_server *server;
    segue_transport *transport;
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.txt",
             argc > 1 ? argv[1] : "core/examples/library");
    if (glob(pattern, 0, NULL, &found) != 0) {
        fprintf(stderr, "there is no text: %s\n", pattern);
        return 2;
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_lines(found.gl_pathv[i]);
    item.flags = SEGUE_TOOL_INCREMENTAL;
    return segue_runtime_new(NULL, &runtime, NULL) ||
           segue_server_new(runtime, NULL, &server, NULL) ||
           segue_server_add(server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL) ||
           segue_transport_stdio(runtime, &transport) ||
           segue_server_attach(server, transport, NULL) || segue_runtime_run(runtime);
}
