#include <segue/easy.h>
#include <stdio.h>
static void greet(void *user, segue_call *call)
{
    const char *name = user;
    segue_call_argument_text(call, "name", &name, NULL);
    segue_call_printf(call, "Hello, %s!", name);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

int main(void)
{
    const char *tool = "{\"name\":\"greet\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options item = {sizeof item, .on_call = greet, .user = "world"};
    segue_runtime *runtime;
    segue_server *server;
    segue_listener *listener;
    return segue_runtime_new(NULL, &runtime, NULL) ||
           segue_server_new(runtime, NULL, &server, NULL) ||
           segue_server_add(server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL) ||
           segue_server_listen(server, NULL, &listener, NULL) ||
           printf("%s\n", segue_listener_url(listener)) < 0 || fflush(stdout) ||
           segue_runtime_run(runtime);
}
