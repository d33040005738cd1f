/* The demo of Segue: a text is streamed line by line while the server and the client are
 * killed with -9 and their connections cut, and must arrive whole.
 *
 *   demo [FILE]        FILE instead of the longest one in /usr/share/common-licenses
 *   demo --self-test   checks that the comparison finds every kind of damage
 *
 * SEGUE_DEMO_TRANSPORT is http (the default) or stdio, where nothing can be cut.
 * SEGUE_DEMO_ERA is modern (2026-07-28 with event streams, the default) or legacy
 * (2025-11-25 with SEP-1905); the program that reads the text uses it, too.
 * SEGUE_DEMO_PYTHON is an interpreter that has the package: then a further client, in
 * Python, reads the same task over HTTP at the same time. SEGUE_DEMO_NODE is the program
 * reader.js in a place where it finds segue-mcp: then one in Node does, too.
 * SEGUE_DEMO_SEED repeats the moments of kills and cuts, SEGUE_DEMO_SECONDS (1 to 25)
 * sets how long the text takes when no process is killed. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "conductor.h"
#include "reader.h"
#include "self_test.h"

#define TEXTS "/usr/share/common-licenses"
#define SECONDS 14

/* --client PARENT WHERE STORE TEXT OUTPUT STATE DURATION: the conductor starts the client
 * with these arguments. */
static int run_client(char **argv)
{
    const reader_paths paths = {argv[3], argv[4], argv[5], argv[6], argv[7]};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != atoi(argv[2]))
        return 1; /* the conductor ended before the call took effect */
    return reader_run(&paths, atoi(argv[8]));
}

/* --follow PARENT PROGRAM [ARGUMENT...]: the conductor starts another program this way,
 * so that it dies with the conductor. */
static int follow(char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != atoi(argv[2]))
        return 1;
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 1;
}

/* Finds the longest regular file; of several such files it is the first by name. */
static bool find_text(char *path, size_t size)
{
    DIR *dir = opendir(TEXTS);
    off_t longest = 0;
    struct dirent *entry;
    struct stat info;
    if (!dir)
        return false;
    while ((entry = readdir(dir))) {
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(info.st_mode))
            continue;
        const char *name = strrchr(path, '/');
        if (info.st_size < longest ||
            (info.st_size == longest && name && strcmp(entry->d_name, name + 1) > 0))
            continue;
        longest = info.st_size;
        snprintf(path, size, TEXTS "/%s", entry->d_name);
    }
    closedir(dir);
    return longest > 0;
}

static uint64_t choose_seed(void)
{
    const char *given = getenv("SEGUE_DEMO_SEED");
    uint64_t seed = 0;
    if (given && *given)
        return strtoull(given, NULL, 10);
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint64_t)time(NULL);
    return seed % 1000000;
}

static int choose_duration(void)
{
    const char *given = getenv("SEGUE_DEMO_SECONDS");
    int seconds = given && *given ? atoi(given) : SECONDS;
    return 1000 * (seconds < 1 ? 1 : seconds > 25 ? 25 : seconds);
}

/* Returns false when the value is neither. */
static bool choose_transport(bool *http)
{
    const char *given = getenv("SEGUE_DEMO_TRANSPORT");
    *http = !given || !*given || strcmp(given, "http") == 0;
    return *http || strcmp(given, "stdio") == 0;
}

static bool is_era(const char *era)
{
    return !era || !*era || strcmp(era, "modern") == 0 || strcmp(era, "legacy") == 0;
}

int main(int argc, char **argv)
{
    char path[4096] = "", program[4096];
    bool http;
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (argc == 9 && strcmp(argv[1], "--client") == 0)
        return run_client(argv);
    if (argc >= 4 && strcmp(argv[1], "--follow") == 0)
        return follow(argv);
    if (argc == 2 && strcmp(argv[1], "--self-test") == 0)
        return self_test_run();
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        fprintf(stderr, "usage: demo [FILE | --self-test]\n");
        return 2;
    }
    if (!choose_transport(&http)) {
        fprintf(stderr, "demo: SEGUE_DEMO_TRANSPORT is http or stdio\n");
        return 2;
    }
    if (!is_era(getenv("SEGUE_DEMO_ERA"))) {
        fprintf(stderr, "demo: SEGUE_DEMO_ERA is modern or legacy\n");
        return 2;
    }
    if (len < 0) {
        perror("demo: /proc/self/exe");
        return 1;
    }
    program[len] = 0;
    if (argc == 1 && !find_text(path, sizeof path)) {
        fprintf(stderr, "demo: no text in " TEXTS ", name a file\n");
        return 1;
    }
    return conductor_run(program, argc == 2 ? argv[1] : path, http, choose_seed(),
                         choose_duration());
}
