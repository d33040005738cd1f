/* The rate of a pair of pipes without the library: with a child that sends back what it
 * reads, with 32 messages of 250 bytes in flight, and with a child that only reads lines
 * of 330 bytes. Both sides read and write up to 64 KiB at a time. Each figure is the
 * median of five runs, in messages per second.
 *
 *   bench_pipe [MS]     length of one run; default 500 */
#include "bench.h"

#include <sys/wait.h>
#include <unistd.h>

#define ROOM ((size_t)64 * 1024)
#define RUNS 5
#define IN_FLIGHT 32
#define ECHO_BYTES 250
#define ONE_WAY_BYTES 330

typedef struct child {
    pid_t pid;
    int in; /* the child's input */
    int out;
} child;

static void write_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t sent = write(fd, bytes, len);
        if (sent <= 0)
            bench_fail("a pipe cannot be written");
        bytes += sent;
        len -= (size_t)sent;
    }
}

static void send_back(int in, int out)
{
    static char room[ROOM];
    ssize_t got;
    while ((got = read(in, room, sizeof room)) > 0)
        write_all(out, room, (size_t)got);
}

/* Counts lines, so that every byte is read, and reports the count at the end. */
static void count_lines(int in, int out)
{
    static char room[ROOM];
    uint64_t lines = 0;
    ssize_t got;
    while ((got = read(in, room, sizeof room)) > 0) {
        const char *at = room, *end = room + got;
        while ((at = memchr(at, '\n', (size_t)(end - at)))) {
            lines++;
            at++;
        }
    }
    write_all(out, (const char *)&lines, sizeof lines);
}

static child start(void (*run)(int in, int out))
{
    int there[2], back[2];
    child c;
    if (pipe(there) || pipe(back) || (c.pid = fork()) < 0)
        bench_fail("no pipe or no process");
    if (c.pid == 0) {
        close(there[1]);
        close(back[0]);
        run(there[0], back[1]);
        _exit(0);
    }
    close(there[0]);
    close(back[1]);
    c.in = there[1];
    c.out = back[0];
    return c;
}

static void fill(char *bytes, size_t size, size_t count)
{
    memset(bytes, 'x', size * count);
    for (size_t i = 1; i <= count; i++)
        bytes[i * size - 1] = '\n';
}

/* Counts the bytes that come back, and sends whole messages for them. */
static double echo(int64_t run_ns)
{
    static char messages[ECHO_BYTES * IN_FLIGHT], room[ROOM];
    child c = start(send_back);
    size_t bytes = 0, answered = 0;
    fill(messages, ECHO_BYTES, IN_FLIGHT);
    int64_t begun = bench_now_ns(), now = begun;
    write_all(c.in, messages, sizeof messages);
    while ((now = bench_now_ns()) - begun < run_ns) {
        ssize_t got = read(c.out, room, sizeof room);
        if (got <= 0)
            bench_fail("the child has gone");
        bytes += (size_t)got;
        size_t whole = bytes / ECHO_BYTES - answered;
        answered += whole;
        write_all(c.in, messages, whole * ECHO_BYTES);
    }
    close(c.in);
    while (read(c.out, room, sizeof room) > 0)
        ;
    close(c.out);
    waitpid(c.pid, NULL, 0);
    return (double)answered * 1e9 / (double)(now - begun);
}

static double one_way(int64_t run_ns)
{
    enum { BATCH = ROOM / ONE_WAY_BYTES };
    static char messages[BATCH * ONE_WAY_BYTES];
    child c = start(count_lines);
    uint64_t lines = 0;
    fill(messages, ONE_WAY_BYTES, BATCH);
    int64_t begun = bench_now_ns();
    while (bench_now_ns() - begun < run_ns)
        write_all(c.in, messages, sizeof messages);
    close(c.in);
    if (read(c.out, &lines, sizeof lines) != sizeof lines) /* everything was read */
        bench_fail("the child has gone");
    int64_t took = bench_now_ns() - begun;
    close(c.out);
    waitpid(c.pid, NULL, 0);
    return (double)lines * 1e9 / (double)took;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void measure(const char *name, double (*run)(int64_t), int64_t run_ns)
{
    double values[RUNS];
    for (int i = 0; i < RUNS; i++)
        values[i] = run(run_ns);
    qsort(values, RUNS, sizeof *values, by_value);
    bench_say(name, values[RUNS / 2]);
}

int main(int argc, char **argv)
{
    int64_t run_ns = bench_number(argc, argv, 1, 500) * 1000000;
    measure("bare_pipe_echo", echo, run_ns);
    measure("bare_pipe_one_way", one_way, run_ns);
    return 0;
}
