/* What the proxy tells the service manager that has started it (sd_notify(3) of systemd):
 * that it serves, that it reads its configuration anew, that it ends, and, for the
 * watchdog, that its event loop runs. Each message is one datagram. Without NOTIFY_SOCKET
 * in the environment nothing is told. */
#include "proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* A manager that reads nothing delays the event loop by at most this time. */
#define SEND_SECONDS 1

/* The path is absolute, or begins with @ when the socket is in the abstract namespace. */
static bool read_address(manager *m, const char *path)
{
    size_t len = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || len < 2 ||
        len >= sizeof m->address.sun_path)
        return false;
    m->address.sun_family = AF_UNIX;
    memcpy(m->address.sun_path, path, len + 1);
    m->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (path[0] == '/'));
    if (path[0] == '@')
        m->address.sun_path[0] = '\0';
    return true;
}

static void send_text(manager *m, const char *state)
{
    struct timeval patience = {.tv_sec = SEND_SECONDS};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ssize_t sent = -1;
    if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience))
        sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL,
                      (struct sockaddr *)&m->address, m->len);
    if (sent < 0 && !m->failed)
        log_event(SEGUE_LOG_WARNING, "notify_failed", NULL,
                  "cannot notify the service manager at NOTIFY_SOCKET: %s",
                  strerror(errno));
    m->failed = sent < 0;
    if (fd >= 0)
        close(fd);
}

void manager_tell(proxy *p, const char *state)
{
    if (p->manager.len)
        send_text(&p->manager, state);
}

void manager_tell_reload(proxy *p)
{
    char state[64];
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
             (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    manager_tell(p, state);
}

/* ---- the watchdog ---- */

static void feed_watchdog(void *user)
{
    proxy *p = user;
    manager_tell(p, "WATCHDOG=1");
    segue_timer_start(p->runtime, p->manager.watchdog_ms, feed_watchdog, p, NULL, NULL);
}

/* Returns half of the watchdog's time; 0 = no watchdog, or one of another process. */
static int64_t read_watchdog(void)
{
    const char *pid = getenv("WATCHDOG_PID"), *given = getenv("WATCHDOG_USEC");
    char *end;
    if (!given || (pid && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    long long usec = strtoll(given, &end, 10);
    if (*end || usec < 2000) {
        log_event(SEGUE_LOG_WARNING, "watchdog_invalid", NULL,
                  "WATCHDOG_USEC is \"%s\", not a number of at least 2000: there is no "
                  "watchdog",
                  given);
        return 0;
    }
    return usec / 2000;
}

void manager_begin(proxy *p)
{
    manager *m = &p->manager;
    const char *path = getenv("NOTIFY_SOCKET");
    if (path && !read_address(m, path))
        log_event(SEGUE_LOG_WARNING, "notify_invalid", NULL,
                  "NOTIFY_SOCKET is \"%s\", neither an absolute path nor @ and a name: "
                  "the service manager is not notified",
                  path);
    if (m->len && (m->watchdog_ms = read_watchdog()) > 0)
        feed_watchdog(p);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}
