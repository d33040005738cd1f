/* Plays many seeds, or one.
 *
 *     simulation                        SEEDS seeds (2000) from FROM (1) on
 *     simulation --trace SEED           one seed, with everything that happens
 *     simulation --history SEED         one seed; prints its history, for `judge`
 *     simulation --shrink SEED          makes a failing seed short, and prints its plan
 *     simulation --plan "a=1 b=2" SEED  one seed with another plan; what it does not name
 *                                       is calm; also together with the options above
 *
 * The environment sets SEEDS, FROM, JOBS (2), SECONDS (no seed starts after this time),
 * FAILURES (no seed starts after this many failures; 20) and PLAN (parts that are the
 * same in all plans). Every 50th seed is played twice, and both runs must be equal to the
 * byte. The last line has the form below. A run of many seeds also fails when a rare
 * event of the library (base/rare.def) never happened.
 *
 *     simulation: 2000 seeds, 0 failed, 300 seeds/s, 2500 simulated s/s, 6.7 s */
#include "simulation/sim.h"

#include "base/rare.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_EVERY 50
#define HANGS_S 120 /* a seed that takes longer hangs in one turn */
#define JOBS_MAX 64
#define HELD_MAX (4 << 20)   /* bytes in use between two runs */
#define ARENA_MAX (64 << 20) /* bytes that the heap keeps between two runs */
#define RARE_SEEDS 10000     /* a run of this many seeds must see each rare event */
#ifdef SGI_KNOBS
#define RARE_COUNTED true
#else
#define RARE_COUNTED false
#endif

/* What all workers share. */
typedef struct tally {
    uint64_t next; /* the next seed */
    uint64_t end;
    uint64_t done, turns, ms;
    int failures;
    uint64_t playing[JOBS_MAX]; /* the seed that each worker plays */
    pid_t workers[JOBS_MAX];
    uint64_t rare[SGI_RARE_EVENTS];
} tally;

static const char *program_name;

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static double real_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Reads parts of a plan, as in "row=2 kills=1". */
static void set_parts(sim_plan *plan, const char *text)
{
    char copy[1000], *rest = copy, *word;
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, " ")))
        for (int i = 0; i < SIM_KNOBS; i++) {
            size_t n = strlen(sim_knob_names[i]);
            if (!strncmp(word, sim_knob_names[i], n) && word[n] == '=')
                plan->at[i] = strtoll(word + n + 1, NULL, 10);
        }
    sim_plan_fit(plan);
}

/* ---- rare events ---- */

static const char *const rare_texts[SGI_RARE_EVENTS][2] = {
#define RARE(name, sentence) {#name, sentence},
#include "base/rare.def"
#undef RARE
};

static void add_rare_events(tally *t)
{
#ifdef SGI_KNOBS
    for (int i = 0; i < SGI_RARE_EVENTS; i++) {
        __atomic_fetch_add(&t->rare[i], sgi_rare_counts[i], __ATOMIC_RELAXED);
        sgi_rare_counts[i] = 0;
    }
#else
    (void)t;
#endif
}

/* Returns how many events never happened. A run of a few seeds does not say so. */
static int print_rare_events(const tally *t)
{
    int never = 0;
    for (int i = 0; RARE_COUNTED && t->done >= RARE_SEEDS && i < SGI_RARE_EVENTS; i++)
        if (!t->rare[i]) {
            printf("never happened: %s: %s\n", rare_texts[i][0], rare_texts[i][1]);
            never++;
        }
    return never;
}

/* ---- many seeds ---- */

/* A run leaves nothing behind but what libraries of the system keep: 0.7 MB were seen.
 * Memory that a run freed serves the next run, unless it is very much: the store of the
 * model keeps a hole of a log as an array of many million entries. */
static void check_memory(uint64_t seed)
{
    struct mallinfo2 now = mallinfo2();
    if (now.uordblks > HELD_MAX) {
        printf("SEED=%llu: %zu bytes are in use after the run\n",
               (unsigned long long)seed, now.uordblks);
        fflush(stdout);
        _exit(1);
    }
    if (now.arena > ARENA_MAX)
        malloc_trim(0);
}

static void play_seed(uint64_t seed, tally *t)
{
    sim_outcome one, two;
    sim_plan plan;
    const char *parts = getenv("PLAN");
    sim_plan_make(&plan, seed);
    if (parts)
        set_parts(&plan, parts);
    sim_run(seed, &plan, NULL, NULL, &one);
    if (seed % AGAIN_EVERY == 0) {
        sim_run(seed, &plan, NULL, NULL, &two);
        if (one.digest != two.digest) {
            printf("SEED=%llu: two runs differ\n", (unsigned long long)seed);
            fflush(stdout);
            _exit(1);
        }
    }
    check_memory(seed);
    add_rare_events(t);
    __atomic_fetch_add(&t->done, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->turns, one.turns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->ms, (uint64_t)one.ms, __ATOMIC_RELAXED);
}

/* Counts the time of the processor, not of the clock: other programs may be busy. */
static void limit_work(void)
{
    struct itimerval limit = {.it_value = {.tv_sec = HANGS_S}};
    setitimer(ITIMER_PROF, &limit, NULL);
}

static void work(tally *t, int worker, double until)
{
    for (;;) {
        uint64_t seed = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
        if (seed >= t->end || (until > 0 && real_now() > until))
            _exit(0);
        t->playing[worker] = seed;
        limit_work();
        play_seed(seed, t);
    }
}

static void start_worker(tally *t, int worker, double until)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        work(t, worker, until);
    t->workers[worker] = pid;
}

/* The run itself has said what is wrong, unless a signal ended it. */
static void tell_failure(const tally *t, int worker, int status)
{
    unsigned long long seed = t->playing[worker];
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
        printf("SEED=%llu: it takes more than %d s of the processor\n", seed, HANGS_S);
    else if (WIFSIGNALED(status))
        printf("SEED=%llu: it ends by signal %d\n", seed, WTERMSIG(status));
    printf("    again: %s --trace %llu\n", program_name, seed);
    printf("    short: %s --shrink %llu\n", program_name, seed);
}

static int play_many(void)
{
    tally *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int jobs = (int)setting("JOBS", 2), running = 0, status;
    double begun = real_now(), until = (double)setting("SECONDS", 0);
    int most = (int)setting("FAILURES", 20);
    pid_t ended;
    until = until > 0 ? begun + until : 0;
    t->next = setting("FROM", 1);
    t->end = t->next + setting("SEEDS", 2000);
    for (; running < jobs && running < JOBS_MAX; running++)
        start_worker(t, running, until);
    while (running && (ended = wait(&status)) > 0) {
        int worker = 0;
        while (t->workers[worker] != ended)
            worker++;
        running--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        tell_failure(t, worker, status);
        if (++t->failures >= most)
            t->next = t->end;
        if (t->failures < most) {
            start_worker(t, worker, until);
            running++;
        }
    }
    double took = real_now() - begun;
    int never = print_rare_events(t);
    printf("%llu turns, %.0f simulated hours\n", (unsigned long long)t->turns,
           (double)t->ms / 3600000);
    printf("simulation: %llu seeds, %d failed, "
           "%.0f seeds/s, %.0f simulated s/s, %.1f s\n",
           (unsigned long long)t->done, t->failures, (double)t->done / took,
           (double)t->ms / 1000 / took, took);
    return t->failures || never;
}

/* ---- one seed ---- */

static int play_one(uint64_t seed, const sim_plan *plan, FILE *trace, FILE *history)
{
    sim_outcome outcome;
    sim_run(seed, plan, trace, history, &outcome);
    if (!history)
        printf("seed %llu: %llu turns, %lld ms, digest %016llx ok\n",
               (unsigned long long)seed, (unsigned long long)outcome.turns,
               (long long)outcome.ms, (unsigned long long)outcome.digest);
    return 0;
}

/* ---- the shrinker ---- */

/* Returns whether the seed fails with this plan. */
static bool fails(uint64_t seed, const sim_plan *plan)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        _exit(play_one(seed, plan, NULL, NULL));
    }
    waitpid(pid, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* Makes each part of the plan calm, as long as the seed still fails. */
static bool calm_down(uint64_t seed, sim_plan *plan)
{
    bool any = false;
    for (int i = 0; i < SIM_KNOBS; i++) {
        sim_plan less = *plan;
        if (i == SIM_row || plan->at[i] == sim_knob_calm[i])
            continue;
        less.at[i] = sim_knob_calm[i];
        sim_plan_fit(&less);
        if (!fails(seed, &less) && plan->at[i] > sim_knob_calm[i] + 1) {
            less = *plan;
            less.at[i]--;
            sim_plan_fit(&less);
        }
        if (memcmp(&less, plan, sizeof less) != 0 && fails(seed, &less)) {
            *plan = less;
            any = true;
        }
    }
    return any;
}

static int shrink(uint64_t seed, sim_plan *plan)
{
    char text[1000];
    if (!fails(seed, plan)) {
        printf("seed %llu does not fail\n", (unsigned long long)seed);
        return 1;
    }
    while (calm_down(seed, plan))
        ;
    sim_plan_print(plan, text, sizeof text);
    printf("%s\n--plan \"%s\" %llu\n", text, strchr(text, ':') + 2,
           (unsigned long long)seed);
    return play_one(seed, plan, NULL, NULL);
}

int main(int argc, char **argv)
{
    sim_plan plan;
    bool traces = false, tells = false, shrinks = false;
    uint64_t seed = argc > 2 ? strtoull(argv[argc - 1], NULL, 10) : 0;
    /* Memory of one run serves the next: its pages need not be mapped again. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    program_name = argv[0];
    if (argc < 3)
        return play_many();
    sim_plan_make(&plan, seed);
    for (int i = 1; i + 1 < argc; i++) {
        traces |= !strcmp(argv[i], "--trace");
        tells |= !strcmp(argv[i], "--history");
        shrinks |= !strcmp(argv[i], "--shrink");
        if (!strcmp(argv[i], "--plan")) {
            memcpy(plan.at, sim_knob_calm, sizeof plan.at);
            set_parts(&plan, argv[i + 1]);
        }
    }
    if (shrinks)
        return shrink(seed, &plan);
    return play_one(seed, &plan, traces ? stdout : NULL, tells ? stdout : NULL);
}
