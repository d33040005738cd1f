/* The sources of connections. The address of an inherited socket decides which hosts are
 * valid. A listener whose accept keeps failing does not spin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "support/http_stage.h"
#include "transport/listen_socket.h"

/* ---- addresses ---- */

static int listen_on(const char *address)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6};
    int off = 0, fd = socket(AF_INET6, SOCK_STREAM, 0);
    inet_pton(AF_INET6, address, &at.sin6_addr);
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 5) != 0)
        return -1;
    return fd;
}

static int status_for(http_stage *s, const char *host)
{
    http_caller c;
    char text[200];
    snprintf(text, sizeof text, "GET /none HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    http_caller_open(s, &c);
    http_caller_say(&c, text);
    int status = http_caller_status(&c);
    http_caller_close(&c);
    return status;
}

/* Descriptor 3 is what "systemd" without a name means. */
static void an_inherited_socket_has_its_own_address(void **state)
{
    char number[24];
    http_stage s = {.listen = {.address = "systemd"}};
    int kept = fcntl(3, F_DUPFD_CLOEXEC, 20), fd = listen_on("::ffff:127.0.0.1");
    (void)state;
    if (fd < 0) {
        print_message("this machine has no IPv6\n");
        skip();
    }
    if (fd != 3) {
        dup2(fd, 3);
        close(fd);
    }
    snprintf(number, sizeof number, "%d", (int)getpid());
    setenv("LISTEN_PID", number, 1);
    setenv("LISTEN_FDS", "1", 1);
    http_stage_begin(&s);
    unsetenv("LISTEN_PID");
    const char *url = segue_listener_url(s.listener);
    assert_memory_equal(url, "http://[::ffff:127.0.0.1]:", 26);
    /* Only this machine reaches the address, so the valid names are known. */
    assert_int_equal(status_for(&s, "localhost"), 404);
    assert_int_equal(status_for(&s, "127.0.0.1:80"), 404);
    assert_int_equal(status_for(&s, "[::ffff:127.0.0.1]:80"), 404);
    assert_int_equal(status_for(&s, "evil.test"), 403);
    assert_int_equal(status_for(&s, "systemd"), 403);
    http_stage_end(&s);
    if (kept >= 0) {
        dup2(kept, 3);
        close(kept);
    }
}

static void a_bound_address_is_a_name(void **state)
{
    http_stage s = {.listen = {.address = "127.0.0.2"}, .host = "127.0.0.2"};
    (void)state;
    http_stage_begin(&s);
    assert_int_equal(status_for(&s, "127.0.0.2"), 404);
    assert_int_equal(status_for(&s, "127.0.0.3"), 403);
    http_stage_end(&s);
}

/* ---- errors that last ---- */

typedef struct rig {
    segue_runtime *rt;
    int64_t clock_ms;
    int warnings;
} rig;

static int64_t rig_clock(void *user)
{
    return ((rig *)user)->clock_ms;
}

static void count_warning(void *user, int32_t level, const char *text)
{
    (void)text;
    ((rig *)user)->warnings += level == SEGUE_LOG_WARNING;
}

static void took(void *user, int fd)
{
    (void)user;
    fail_msg("accepted %d", fd);
}

/* Turns the loop until there is a warning or 30 ms have passed; returns the number of
 * turns. */
static unsigned turns_until(rig *r, int warnings)
{
    unsigned before = ev_iteration(sgi_runtime_loop(r->rt));
    for (int i = 0; i < 50 && r->warnings < warnings; i++)
        segue_runtime_dispatch(r->rt, 30, 0, NULL);
    assert_int_equal(r->warnings, warnings);
    return ev_iteration(sgi_runtime_loop(r->rt)) - before;
}

static void accept_in_vain(int fd)
{
    rig r = {.clock_ms = 1000};
    sgi_acceptor acceptor;
    sgi_listen_socket socket = {.fd = fd};
    segue_hooks hooks = {sizeof hooks, &r, rig_clock, NULL, NULL};
    segue_runtime_options options = {
        .struct_size = sizeof options, .hooks = &hooks, .user = &r, .log = count_warning};
    assert_int_equal(segue_runtime_new(&options, &r.rt, NULL), SEGUE_OK);
    sgi_runtime_lock(r.rt);
    sgi_acceptor_start(&acceptor, r.rt, &socket, 10, took, &r);
    sgi_runtime_unlock(r.rt);
    turns_until(&r, 1);
    unsigned before = ev_iteration(sgi_runtime_loop(r.rt));
    segue_runtime_dispatch(r.rt, 30, 0, NULL);
    /* the listener pauses */
    assert_true(ev_iteration(sgi_runtime_loop(r.rt)) - before < 10);
    assert_int_equal(r.warnings, 1);
    r.clock_ms += 1000;
    assert_true(turns_until(&r, 2) < 20); /* the listener tries again */
    sgi_runtime_lock(r.rt);
    sgi_acceptor_stop(&acceptor);
    sgi_runtime_unlock(r.rt);
    segue_runtime_free(r.rt);
    close(fd);
}

/* ENOTSOCK is no error that accept reports for a single connection. */
static void an_unknown_error_pauses(void **state)
{
    (void)state;
    accept_in_vain(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
}

/* EOPNOTSUPP may be the error of one connection, and not of every connection. */
static void an_error_of_connections_that_lasts_pauses(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    (void)state;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&at, len), 1);
    accept_in_vain(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_inherited_socket_has_its_own_address),
        cmocka_unit_test(a_bound_address_is_a_name),
        cmocka_unit_test(an_unknown_error_pauses),
        cmocka_unit_test(an_error_of_connections_that_lasts_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
