/* The HTTP server of a background runtime: I/O on its own thread, callbacks (the
 * principal, the handlers) on the test's thread, and callers on other threads, some of
 * which disconnect without waiting. The thread sanitizer is the main check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/http_stage.h"

enum { CALLERS = 3, CALLS = 60 };

static atomic_int port, left, answered;

static void greet(void *user, segue_call *call)
{
    (void)user;
    segue_call_send_text(call, "Hello", 5, NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static segue_status name_caller(void *user, segue_transport *transport,
                                const char **principal)
{
    (void)user;
    *principal = segue_transport_header(transport, "mcp-name") ? "somebody" : NULL;
    return *segue_transport_peer(transport) ? SEGUE_OK : SEGUE_E_REFUSED;
}

static int connect_to_server(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atomic_load(&port))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        abort();
    return fd;
}

/* Every third call is abandoned by closing its connection at once. */
static void *play_caller(void *user)
{
    char *request = http_call("1", "greet", NULL);
    char answer[4096];
    (void)user;
    for (int i = 0; i < CALLS; i++) {
        size_t len = 0;
        int fd = connect_to_server();
        if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
            abort();
        while (i % 3 && !(len && strstr(answer, "Hello"))) {
            ssize_t got = recv(fd, answer + len, sizeof answer - 1 - len, 0);
            if (got <= 0)
                abort();
            len += (size_t)got;
            answer[len] = 0;
        }
        atomic_fetch_add(&answered, i % 3 != 0);
        close(fd);
    }
    free(request);
    atomic_fetch_sub(&left, 1);
    return NULL;
}

static void callers_on_threads(void **state)
{
    segue_runtime *rt;
    segue_server *server;
    segue_listener *listener;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_item_options tool = SEGUE_ITEM_OPTIONS_INIT;
    pthread_t threads[CALLERS];
    struct pollfd ready = {.events = POLLIN};
    (void)state;
    options.principal = name_caller;
    tool.on_call = greet;
    assert_int_equal(segue_runtime_new(NULL, &rt, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(rt, &options, &server, NULL), SEGUE_OK);
    static const char json[] =
        "{\"name\":\"greet\",\"inputSchema\":{\"type\":\"object\"}}";
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, json, sizeof json - 1, &tool, NULL),
        SEGUE_OK);
    assert_int_equal(segue_runtime_start(rt), SEGUE_OK);
    assert_int_equal(segue_server_listen(server, NULL, &listener, NULL), SEGUE_OK);
    atomic_store(&port, atoi(strrchr(segue_listener_url(listener), ':') + 1));
    atomic_store(&left, CALLERS);
    segue_runtime_fd(rt, &ready.fd);
    for (int i = 0; i < CALLERS; i++)
        pthread_create(&threads[i], NULL, play_caller, NULL);
    while (atomic_load(&left)) {
        poll(&ready, 1, 10);
        segue_runtime_dispatch(rt, 0, 16, NULL);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&answered), CALLERS * CALLS * 2 / 3);
    segue_listener_close(listener);
    segue_listener_free(listener);
    segue_server_free(server);
    segue_runtime_free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(callers_on_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
