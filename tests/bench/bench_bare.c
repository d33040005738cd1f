/* The least that a server can do: it reads, counts lines and writes as many prepared
 * answers, with one write per read. Pipes and the two processes limit its rate, which is
 * the baseline of the stdio figures.
 *
 *   bench_bare [--cpu N] [BYTES]     BYTES of one answer with its newline */
#include "bench.h"

#include <unistd.h>

#define READ_SIZE ((size_t)64 * 1024)
/* More answers than this are written in several pieces. */
#define PREPARED 256

static size_t count_lines(const char *bytes, size_t len)
{
    const char *end = bytes + len;
    size_t lines = 0;
    while ((bytes = memchr(bytes, '\n', (size_t)(end - bytes)))) {
        lines++;
        bytes++;
    }
    return lines;
}

static void write_all(const char *bytes, size_t len)
{
    while (len) {
        ssize_t sent = write(STDOUT_FILENO, bytes, len);
        if (sent < 0)
            exit(0); /* the load has ended */
        bytes += sent;
        len -= (size_t)sent;
    }
}

int main(int argc, char **argv)
{
    static char input[READ_SIZE];
    ssize_t got;
    bench_pin(&argc, &argv);
    size_t size = (size_t)bench_number(argc, argv, 1, 200);
    if (!size || size > READ_SIZE)
        bench_fail("an answer has 1 to 65536 bytes");
    char *answers = malloc(size * PREPARED);
    if (!answers)
        bench_fail("out of memory");
    memset(answers, 'x', size * PREPARED);
    for (size_t i = 1; i <= PREPARED; i++)
        answers[i * size - 1] = '\n';
    while ((got = read(STDIN_FILENO, input, sizeof input)) > 0)
        for (size_t lines = count_lines(input, (size_t)got), n; lines; lines -= n) {
            n = lines < PREPARED ? lines : PREPARED;
            write_all(answers, n * size);
        }
    free(answers);
    return 0;
}
