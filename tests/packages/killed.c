/* A server on standard input and output, for the tests of packages. Its tool `pages`
 * sends five segments. Its first run stops after three, and the process is killed a
 * second later. The next process continues the task, which is stored in the file of the
 * argument. */
#include <segue/easy.h>

#include <signal.h>
#include <unistd.h>

enum { ALL = 5, FIRST_RUN = 3 };

static void kill_me(int number)
{
    (void)number;
    raise(SIGKILL);
}

static void pages(void *user, segue_call *call)
{
    uint64_t done = 0;
    (void)user;
    int first = segue_call_resumed(call, &done, NULL, NULL) == SEGUE_E_NOT_FOUND;
    for (int page = (int)done + 1; page <= (first ? FIRST_RUN : ALL); page++)
        segue_call_printf(call, "page %d", page);
    if (first) {
        alarm(1);
        return;
    }
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void stop(void *runtime)
{
    segue_runtime_stop(runtime);
}

int main(int argc, char **argv)
{
    static const char tool[] =
        "{\"name\":\"pages\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_runtime *runtime;
    segue_server *server;
    segue_transport *transport;
    signal(SIGALRM, kill_me);
    item.on_call = pages;
    item.flags = SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE;
    item.task = SEGUE_TASK_MAY;
    options.on_idle = stop;
    if (argc < 2 || segue_runtime_new(NULL, &runtime, NULL) != SEGUE_OK)
        return 1;
    options.user = runtime;
    if (segue_store_sqlite(argv[1], NULL, &options.store, NULL) != SEGUE_OK ||
        segue_server_new(runtime, &options, &server, NULL) != SEGUE_OK ||
        segue_server_add(server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL) !=
            SEGUE_OK ||
        segue_transport_stdio(runtime, &transport) != SEGUE_OK ||
        segue_server_attach(server, transport, NULL) != SEGUE_OK)
        return 1;
    segue_server_free(server);
    return segue_runtime_run(runtime) != SEGUE_OK;
}
