#include <segue/easy.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    char *result = NULL, *text = NULL;
    segue_runtime *runtime;
    segue_transport *transport;
    segue_session *session;
    if (argc < 2 || segue_runtime_new(NULL, &runtime, NULL) ||
        segue_transport_http(runtime, argv[1], NULL, &transport, NULL) ||
        segue_session_open(runtime, transport, NULL, NULL, &session, NULL))
        return 1;
    segue_status status =
        segue_call_tool(session, "greet", "{\"name\":\"Ada\"}", 5000, &result, NULL);
    if (!status)
        status = segue_result_text(result, SEGUE_TO_NUL, &text);
    puts(status ? segue_status_text(status) : text);
    free(text);
    free(result);
    segue_session_free(session);
    segue_runtime_free(runtime);
    return status != SEGUE_OK;
}
