/* The progress of a command that takes long. */
#include "look.h"

#include <unistd.h>

/* A line without a known end is drawn after this many operations more. */
#define STEP 100
#define WIDTH 30

void look_progress_begin(look_progress *p, long long whole)
{
    *p =
        (look_progress){.is_shown = isatty(STDERR_FILENO), .whole = whole, .percent = -1};
}

static void draw(look_progress *p, int percent)
{
    static const char bar[] = "==============================";
    int filled = percent * WIDTH / 100;
    p->percent = percent;
    if (p->whole > 0)
        fprintf(stderr, "\r[%.*s%*s] %3d %%  ", filled, bar, WIDTH - filled, "", percent);
    else
        putc('\r', stderr);
    fprintf(stderr, "%lld operations", p->operations);
    fflush(stderr);
}

static int percent_of(const look_progress *p)
{
    long long part = p->part < p->whole ? p->part : p->whole;
    return p->whole > 0 ? (int)((double)part / (double)p->whole * 100) : 0;
}

void look_progress_step(look_progress *p)
{
    p->operations++;
    int percent = percent_of(p);
    bool is_due = p->whole > 0 ? percent != p->percent : p->operations % STEP == 0;
    if (p->is_shown && is_due)
        draw(p, percent);
}

void look_progress_end(look_progress *p)
{
    if (!p->is_shown)
        return;
    draw(p, 100);
    putc('\n', stderr);
}
