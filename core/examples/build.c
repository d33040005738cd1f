/* A runner of builds with a live log: each line of a step is a segment as soon as the
 * step prints it. A step that fails ends the build. A build runs on a thread of its own,
 * so that the server answers other calls meanwhile; workers.c shows a fixed number of
 * threads. It is a server on standard input and output.
 *
 *   client run_build '{"steps":["compile","test"]}' ./build */
#include <segue/easy.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *const steps[][2] = {
    {"compile", "for name in main parse print; do echo compiling $name.c; done"},
    {"test", "echo 12 tests passed"},
    {"package", "echo packing; echo no space left on the disk; exit 3"},
    {"publish", "echo publishing"},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Runs on the thread of the runtime when the client has read, or has cancelled. */
static void wake(void *user, segue_call *call)
{
    (void)user;
    (void)call;
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Sends a line, and waits while too much output waits for the client. */
static segue_status send_line(segue_call *call, const char *step, const char *line)
{
    segue_status status;
    pthread_mutex_lock(&lock);
    while ((status = segue_call_printf(call, "[%s] %s", step, line)) ==
               SEGUE_E_WOULD_BLOCK &&
           !segue_call_is_cancelled(call))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Returns the exit status of the step; -1 when it was not run to its end. */
static int run_step(segue_call *call, const char *const step[2])
{
    char line[1024];
    FILE *output = popen(step[1], "r");
    segue_status status = SEGUE_OK;
    while (output && status == SEGUE_OK && !segue_call_is_cancelled(call) &&
           fgets(line, sizeof line, output))
        status = send_line(call, step[0], line);
    int ended = output ? pclose(output) : -1;
    return status == SEGUE_OK && WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

static const char *const *find_step(const char *json, size_t len)
{
    char name[32] = "";
    size_t size = sizeof name;
    if (segue_json_text(json, len, name, &size) == SEGUE_OK)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            if (!strcmp(steps[i][0], name))
                return steps[i];
    return NULL;
}

/* Ends the call as failed; the model sees the text. */
static void fail(segue_call *call, const char *text)
{
    segue_content *content;
    if (segue_content_new(segue_call_runtime(call), &content) != SEGUE_OK)
        return;
    segue_content_add_text(content, text, strlen(text), NULL);
    segue_content_set_error(content, 1);
    segue_call_complete(call, content, NULL);
    segue_content_free(content);
}

static void *run_build(void *user)
{
    segue_call *call = user;
    const char *list = "[]", *name;
    size_t len = 2, at = 0, name_len;
    int status = 0;
    segue_call_argument(call, "steps", &list, &len);
    while (status == 0 &&
           segue_json_next(list, len, &at, NULL, NULL, &name, &name_len) == SEGUE_OK) {
        const char *const *step = find_step(name, name_len);
        char text[64];
        status = step ? run_step(call, step) : -1;
        snprintf(text, sizeof text, "%s failed with status %d\n",
                 step ? step[0] : "an unknown step", status);
        if (status != 0)
            fail(call, text);
    }
    if (status == 0 && segue_call_printf(call, "the build is done\n") == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
    return NULL;
}

static void on_call(void *user, segue_call *call)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    pthread_t thread;
    (void)user;
    events.on_drain = wake;
    events.on_cancel = wake;
    if (segue_call_watch(call, &events) != SEGUE_OK ||
        pthread_create(&thread, NULL, run_build, call) != 0)
        segue_call_free(call); /* the client gets an error */
    else
        pthread_detach(thread);
}

int main(void)
{
    const char *tool =
        "{\"name\":\"run_build\",\"description\":\"Runs steps of the build.\","
        "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"steps\":"
        "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}}";
    segue_item_options item = {sizeof item, .on_call = on_call};
    segue_runtime *runtime;
    segue_server *server;
    segue_transport *transport;
    item.flags = SEGUE_TOOL_INCREMENTAL;
    return segue_runtime_new(NULL, &runtime, NULL) ||
           segue_server_new(runtime, NULL, &server, NULL) ||
           segue_server_add(server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL) ||
           segue_transport_stdio(runtime, &transport) ||
           segue_server_attach(server, transport, NULL) || segue_runtime_run(runtime);
}
