/* The cutting proxy for tests in other languages: support/cutting_proxy.h as a program.
 *
 *     cutting_proxy --target HOST:PORT|unix:PATH [--port P] [--seed N]
 *                   [--pieces MOST] [--delay MS] [--room BYTES] [--most CONNECTIONS]
 *                   [--every MIN[-MAX] [--way up|down|both] [--how fin|rst|silence]
 *                    [--times N]]
 *
 * HOST is a numeric IPv4 address. It prints "port N", then answers each line of its input
 * with one line, and ends with its input:
 *
 *     cut fin|rst|silence        "cut N": N connections were cut
 *     plan up|down MIN[-MAX] fin|rst|silence [TIMES]      "ok"
 *     nothing up|down            "ok": that direction has no plan any more
 *     refuse MS                  "ok": < 0 until the next command, 0 = no more
 *     counts                     "connections N open N cuts N up N down N held N"
 *
 * An unknown line is answered with "error". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cutting_proxy.h"

#define LINE_SIZE 512

typedef struct settings {
    cutting_options options;
    cutting_plan plan;
    bool planned;
    bool ways[2];
} settings;

static void complain(const char *what)
{
    fprintf(stderr, "cutting_proxy: %s\n", what);
    exit(2);
}

static bool parse_number(const char *text, int64_t least, int64_t most, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *value = number;
    return end != text && !*end && !errno && number >= least && number <= most;
}

static bool parse_span(const char *text, cutting_plan *plan)
{
    char first[LINE_SIZE];
    int64_t min, max;
    const char *dash = strchr(text, '-');
    size_t len = dash ? (size_t)(dash - text) : strlen(text);
    if (len >= sizeof first)
        return false;
    memcpy(first, text, len);
    first[len] = 0;
    if (!parse_number(first, 0, INT64_MAX, &min) ||
        !parse_number(dash ? dash + 1 : first, min, INT64_MAX, &max))
        return false;
    plan->min = (size_t)min;
    plan->max = (size_t)max;
    return true;
}

static bool parse_how(const char *text, cutting_how *how)
{
    static const char *const names[] = {"fin", "rst", "silence"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *how = (cutting_how)i;
            return true;
        }
    }
    return false;
}

static bool parse_way(const char *text, cutting_direction *way)
{
    *way = strcmp(text, "up") == 0 ? CUTTING_UP : CUTTING_DOWN;
    return *way == CUTTING_UP || strcmp(text, "down") == 0;
}

/* ---- the command line ---- */

static bool take_target(cutting_options *options, char *text)
{
    int64_t port;
    char *colon = strrchr(text, ':');
    if (strncmp(text, "unix:", 5) == 0) {
        options->target_path = text + 5;
        return true;
    }
    if (!colon || !parse_number(colon + 1, 1, 65535, &port))
        return false;
    *colon = 0;
    options->target_host = text;
    options->target_port = (uint16_t)port;
    return true;
}

static bool take_ways(settings *s, const char *text)
{
    cutting_direction way = CUTTING_UP;
    bool both = strcmp(text, "both") == 0;
    if (!both && !parse_way(text, &way))
        return false;
    s->ways[CUTTING_UP] = both || way == CUTTING_UP;
    s->ways[CUTTING_DOWN] = both || way == CUTTING_DOWN;
    return true;
}

static bool take_number(settings *s, const char *name, const char *text)
{
    int64_t value;
    if (!parse_number(text, 0, INT32_MAX, &value))
        return false;
    if (strcmp(name, "--seed") == 0)
        s->options.seed = (uint64_t)value;
    else if (strcmp(name, "--port") == 0 && value <= 65535)
        s->options.port = (uint16_t)value;
    else if (strcmp(name, "--pieces") == 0)
        s->options.piece_max = (size_t)value;
    else if (strcmp(name, "--delay") == 0)
        s->options.delay_ms = (int)value;
    else if (strcmp(name, "--room") == 0)
        s->options.room = (size_t)value;
    else if (strcmp(name, "--most") == 0)
        s->options.most = (size_t)value;
    else if (strcmp(name, "--times") == 0)
        s->plan.times = (int)value;
    else
        return false;
    return true;
}

static bool take_option(settings *s, const char *name, char *text)
{
    if (strcmp(name, "--target") == 0)
        return take_target(&s->options, text);
    if (strcmp(name, "--every") == 0)
        return s->planned = parse_span(text, &s->plan);
    if (strcmp(name, "--way") == 0)
        return take_ways(s, text);
    if (strcmp(name, "--how") == 0)
        return parse_how(text, &s->plan.how);
    return take_number(s, name, text);
}

static settings read_arguments(int argc, char **argv)
{
    settings s = {.ways = {true, true}};
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc || !take_option(&s, argv[i], argv[i + 1]))
            complain(argv[i]);
    if (!s.options.target_path && !s.options.target_port)
        complain("--target HOST:PORT or --target unix:PATH is needed");
    return s;
}

/* ---- commands ---- */

static void print_counts(cutting_proxy *proxy)
{
    static const char *const names[CUTTING_COUNTS] = {[CUTTING_CONNECTIONS] =
                                                          "connections",
                                                      [CUTTING_OPEN] = "open",
                                                      [CUTTING_CUTS] = "cuts",
                                                      [CUTTING_BYTES_UP] = "up",
                                                      [CUTTING_BYTES_DOWN] = "down",
                                                      [CUTTING_MOST_HELD] = "held"};
    for (int i = 0; i < CUTTING_COUNTS; i++)
        printf("%s%s %llu", i ? " " : "", names[i],
               (unsigned long long)cutting_proxy_get(proxy, (cutting_count)i));
    putchar('\n');
}

static bool run_plan(cutting_proxy *proxy, char *words[5])
{
    cutting_plan plan = {0};
    int64_t times = 0;
    if (!words[1] || !words[2] || !words[3] || !parse_way(words[1], &plan.direction) ||
        !parse_span(words[2], &plan) || !parse_how(words[3], &plan.how) ||
        (words[4] && !parse_number(words[4], 0, INT32_MAX, &times)))
        return false;
    plan.times = (int)times;
    cutting_proxy_plan(proxy, &plan);
    return puts("ok") >= 0;
}

/* Runs and answers a command; returns false for an unknown line. */
static bool run_line(cutting_proxy *proxy, char *line)
{
    char *words[5] = {NULL}, *rest = line;
    cutting_how how;
    cutting_direction way;
    int64_t ms;
    for (int i = 0; i < 5; i++)
        words[i] = strtok_r(NULL, " \r\n", &rest);
    const char *name = words[0] ? words[0] : "", *argument = words[1] ? words[1] : "";
    if (strcmp(name, "plan") == 0)
        return run_plan(proxy, words);
    if (strcmp(name, "counts") == 0) {
        print_counts(proxy);
        return true;
    }
    if (strcmp(name, "cut") == 0 && parse_how(argument, &how))
        return printf("cut %zu\n", cutting_proxy_cut_all(proxy, how)) > 0;
    if (strcmp(name, "nothing") == 0 && parse_way(argument, &way)) {
        cutting_proxy_plan_nothing(proxy, way);
        return puts("ok") >= 0;
    }
    if (strcmp(name, "refuse") == 0 && parse_number(argument, -1, INT32_MAX, &ms) &&
        cutting_proxy_refuse(proxy, ms))
        return puts("ok") >= 0;
    return false;
}

int main(int argc, char **argv)
{
    settings s = read_arguments(argc, argv);
    cutting_proxy *proxy;
    char line[LINE_SIZE];
    if (!cutting_proxy_start(&s.options, &proxy))
        complain(strerror(errno));
    for (int d = 0; d < 2; d++) {
        s.plan.direction = (cutting_direction)d;
        if (s.planned && s.ways[d])
            cutting_proxy_plan(proxy, &s.plan);
    }
    printf("port %d\n", cutting_proxy_port(proxy));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (!run_line(proxy, line))
            puts("error");
        fflush(stdout);
    }
    cutting_proxy_stop(proxy);
    return 0;
}
