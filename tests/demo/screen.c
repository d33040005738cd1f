/* All output goes through one FILE, flushed after each drawing. The cursor rests at the
 * end of the bar: a line of text first clears the bar and is followed by a new one.
 * NO_COLOR is honoured; where the locale is not UTF-8 the bar uses other characters. */
#include "screen.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_MS 66
#define RATE_MS 500

typedef struct sign {
    const char *utf8;
    const char *plain;
    const char *colour;
} sign;

static const sign signs[] = {
    [MARK_SERVER_KILLED] = {"✖", "x", "\033[1;31m"},
    [MARK_CLIENT_KILLED] = {"✖", "X", "\033[1;35m"},
    [MARK_CUT] = {"╱", "/", "\033[1;33m"},
    [MARK_RESUMED] = {"↻", ">", "\033[1;32m"},
    [MARK_NONE] = {" ", " ", ""},
};
static const sign filled = {"━", "=", "\033[36m"};
static const sign empty = {"─", "-", "\033[2m"};

static void put_sign(const screen *s, const sign *what)
{
    if (s->colour)
        fputs(what->colour, stdout);
    fputs(s->utf8 ? what->utf8 : what->plain, stdout);
    if (s->colour && *what->colour)
        fputs("\033[0m", stdout);
}

void screen_open(screen *s, size_t total, int64_t now_ms)
{
    const char *terminal = getenv("TERM");
    const char *no_colour = getenv("NO_COLOR");
    setlocale(LC_CTYPE, "");
    *s = (screen){.total = total, .started_ms = now_ms, .measured_ms = now_ms};
    s->live = isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    s->colour = s->live && !(no_colour && *no_colour);
    s->utf8 = s->live && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    for (size_t i = 0; i < SCREEN_CELLS; i++)
        s->marks[i] = MARK_NONE;
}

static void draw_bar(screen *s, int64_t now_ms)
{
    size_t done = s->total ? s->segments * SCREEN_CELLS / s->total : SCREEN_CELLS;
    fputs("\r  ", stdout);
    for (size_t i = 0; i < SCREEN_CELLS; i++) {
        if (s->marks[i] != MARK_NONE)
            put_sign(s, &signs[s->marks[i]]);
        else
            put_sign(s, i < done ? &filled : &empty);
    }
    printf(" %zu/%zu  %3.0f/s \033[K", s->segments, s->total, s->rate);
    fflush(stdout);
    s->drawn_ms = now_ms;
}

/* A kill hides other marks in the same cell. */
static void mark_bar(screen *s, mark what)
{
    size_t cell = s->total ? s->segments * SCREEN_CELLS / s->total : 0;
    mark *at = &s->marks[cell < SCREEN_CELLS ? cell : SCREEN_CELLS - 1];
    bool is_kill = what == MARK_SERVER_KILLED || what == MARK_CLIENT_KILLED;
    if (is_kill || (what == MARK_CUT && *at == MARK_NONE))
        *at = what;
}

void screen_tell(screen *s, int64_t now_ms, mark what, const char *format, ...)
{
    va_list args;
    if (s->live)
        fputs("\r\033[K", stdout);
    printf("%6.1f s  ", (double)(now_ms - s->started_ms) / 1000);
    put_sign(s, &signs[what]);
    putchar(' ');
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    mark_bar(s, what);
    if (s->live)
        draw_bar(s, now_ms);
    fflush(stdout);
}

static void measure(screen *s, int64_t now_ms)
{
    int64_t passed = now_ms - s->measured_ms;
    if (passed < RATE_MS)
        return;
    double latest = (double)(s->segments - s->measured) * 1000 / (double)passed;
    s->rate = s->rate > 0 ? (s->rate + latest) / 2 : latest;
    s->measured = s->segments;
    s->measured_ms = now_ms;
}

void screen_progress(screen *s, int64_t now_ms, size_t segments)
{
    s->segments = segments > s->segments ? segments : s->segments;
    measure(s, now_ms);
    if (s->live) {
        if (now_ms - s->drawn_ms >= FRAME_MS)
            draw_bar(s, now_ms);
        return;
    }
    int quarters = s->total ? (int)(s->segments * 4 / s->total) : 0;
    if (quarters > s->quarters) {
        s->quarters = quarters;
        screen_tell(s, now_ms, MARK_NONE, "%zu of %zu segments", s->segments, s->total);
    }
}

void screen_close(screen *s, int64_t now_ms)
{
    if (!s->live)
        return;
    draw_bar(s, now_ms);
    putchar('\n');
    fflush(stdout);
}
