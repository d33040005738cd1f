/* Finds out the capabilities of the client at standard input before the first message is
 * read. The proxy declares the same capabilities to upstreams. Some servers ask questions
 * only of clients with certain capabilities; such a server then behaves as without the
 * proxy. The message stays in the pipe. */
#include "peek.h"

#include "limits.h"

#include <segue/easy.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Copies the content of a pipe without removing it. Returns the length of the copy; -1
 * when the descriptor is not a pipe. */
static ssize_t peek_pipe(int fd, char *room)
{
    int copy[2];
    if (pipe2(copy, O_CLOEXEC))
        return -1;
    ssize_t len = tee(fd, copy[1], PEEK_MAX, SPLICE_F_NONBLOCK);
    ssize_t got = len > 0 ? read(copy[0], room, (size_t)len) : len;
    close(copy[0]);
    close(copy[1]);
    return got;
}

static ssize_t peek(int fd, char *room)
{
    ssize_t got = recv(fd, room, PEEK_MAX, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && errno == ENOTSOCK ? peek_pipe(fd, room) : got;
}

/* Waits for the first whole line in the pipe, and copies the line. Returns its length; 0
 * when no line was seen in time. */
static size_t peek_line(int fd, char *room)
{
    struct pollfd wait = {fd, POLLIN, 0};
    struct timespec step = {0, PEEK_STEP_MS * 1000000L};
    for (int ms = 0; ms < PEEK_PATIENCE_MS; ms += PEEK_STEP_MS) {
        if (poll(&wait, 1, PEEK_PATIENCE_MS) <= 0)
            return 0;
        ssize_t got = peek(fd, room);
        char *end = got > 0 ? memchr(room, '\n', (size_t)got) : NULL;
        if (end)
            return (size_t)(end - room);
        if (got <= 0 || (size_t)got == PEEK_MAX || wait.revents & POLLHUP)
            return 0;
        /* waits, because the rest of the line has not arrived yet */
        nanosleep(&step, NULL);
    }
    return 0;
}

void peek_write_questions(text *out, json capabilities)
{
    static const char *const passed[] = {"elicitation", "sampling", "roots"};
    text_add_str(out, "{");
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        json value = json_get(capabilities, passed[i]);
        if (!value.n)
            continue;
        text_add_key(out, passed[i]);
        text_add_json(out, value);
    }
    text_add_str(out, "}");
}

char *peek_capabilities(segue_runtime *runtime, int fd)
{
    char *room = malloc(PEEK_MAX);
    text out = {.p = NULL};
    size_t len = room ? peek_line(fd, room) : 0;
    if (!len || segue_json_check(runtime, room, len, NULL) != SEGUE_OK) {
        free(room);
        return NULL;
    }
    json params = json_get((json){room, len}, "params");
    json can = json_get(params, "capabilities");
    if (!can.n)
        can = json_get(json_get(params, "_meta"),
                       "io.modelcontextprotocol/clientCapabilities");
    peek_write_questions(&out, can);
    free(room);
    return out.p;
}
