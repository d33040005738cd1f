/* The proxy has one mutex, which its thread holds except while it polls. So other threads
 * see the state between two turns, and counts are those of whole turns. Only the thread
 * touches sockets, because poll keeps a socket alive that another thread closes. A
 * command is put in `asked`, the thread is woken, and the caller waits until `asked` is
 * empty again.
 *
 * Two sockets are bound to the port. `holder` never listens: it reserves the port while
 * `listener` is closed. The kernel refuses connections in that time. */
#include "support/cutting_proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "support/cutting_line.h"

#define DEFAULT_ROOM ((size_t)64 * 1024)
#define DEFAULT_MOST 256
#define FIRST_LINE 2 /* index in the poll set, behind the wake-up pipe and the listener */
#define PURPOSE_PLAN 16

typedef struct active_plan {
    cutting_plan plan;
    bool on;
    int left;      /* cuts left; < 0 = no end */
    uint64_t turn; /* a number that makes two plans draw different random numbers */
} active_plan;

typedef struct command {
    void (*run)(cutting_proxy *p, struct command *command);
    cutting_how how;
    const cutting_plan *plan;
    cutting_direction direction;
    int64_t ms;
    size_t cut;
    int fault;
} command;

struct cutting_proxy {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turned; /* signalled after each turn and after each command */
    command *asked;
    bool stopping;
    cutting_options options;
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
    struct sockaddr_in target;
    struct sockaddr_in own;
    int bell, holder, listener;
    int64_t listen_at; /* the time to listen again, while the listener is closed */
    TAILQ_HEAD(, cutting_line) lines;
    struct pollfd *set;
    active_plan plans[2];
    uint64_t counts[CUTTING_COUNTS];
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- sockets ---- */

static int open_bound(const struct sockaddr_in *address)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) == 0)
        return fd;
    int fault = errno;
    close(fd);
    errno = fault;
    return -1;
}

static bool open_listener(cutting_proxy *p)
{
    p->listen_at = CUTTING_NEVER;
    if (p->listener >= 0)
        return true;
    p->listener = open_bound(&p->own);
    if (p->listener >= 0 && listen(p->listener, SOMAXCONN) == 0)
        return true;
    int fault = errno;
    close_fd(&p->listener);
    errno = fault;
    return false;
}

static bool open_port(cutting_proxy *p)
{
    socklen_t size = sizeof p->own;
    p->own = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_port = htons(p->options.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    p->holder = open_bound(&p->own);
    return p->holder >= 0 &&
           getsockname(p->holder, (struct sockaddr *)&p->own, &size) == 0 &&
           open_listener(p);
}

static int open_target(const cutting_proxy *p, bool *connected)
{
    bool is_path = p->options.target_path != NULL;
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    int fd = socket(is_path ? AF_UNIX : AF_INET,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int result;
    if (fd < 0)
        return -1;
    memcpy(local.sun_path, p->path, sizeof local.sun_path);
    if (is_path)
        result = connect(fd, (const struct sockaddr *)&local, sizeof local);
    else
        result = connect(fd, (const struct sockaddr *)&p->target, sizeof p->target);
    *connected = result == 0;
    if (result == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

static void refuse_client(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

/* ---- plans ---- */

static void draw(const active_plan *active, cutting_line *line)
{
    const cutting_plan *plan = &active->plan;
    cutting_half *half = &line->halves[plan->direction];
    uint64_t span = (uint64_t)plan->max - plan->min + 1;
    uint64_t purpose = PURPOSE_PLAN + 2 * active->turn + plan->direction;
    uint64_t drawn = cutting_mix(line->options->seed, line->number, purpose);
    half->cut_at = half->passed + plan->min + (span ? drawn % span : drawn);
}

static void forget_cuts(cutting_proxy *p, int direction)
{
    cutting_line *line;
    p->plans[direction].on = false;
    TAILQ_FOREACH(line, &p->lines, link)
        line->halves[direction].cut_at = UINT64_MAX;
}

static void follow_plans(cutting_proxy *p, int64_t now)
{
    cutting_line *line;
    TAILQ_FOREACH(line, &p->lines, link) {
        for (int d = 0; d < 2; d++) {
            active_plan *active = &p->plans[d];
            if (!active->on || !cutting_line_at_cut(line, (cutting_direction)d))
                continue;
            p->counts[CUTTING_CUTS] +=
                cutting_line_cut(line, active->plan.how, true, now);
            if (active->left > 0 && --active->left == 0)
                forget_cuts(p, d);
        }
    }
}

/* ---- the thread ---- */

static void carry(cutting_proxy *p, int client, int64_t now)
{
    const int on = 1;
    bool connected = false;
    int target = open_target(p, &connected);
    uint64_t number = p->counts[CUTTING_CONNECTIONS]++;
    cutting_line *line = NULL;
    if (target >= 0)
        line = cutting_line_new(&p->options, number, client, target, connected, now);
    if (!line) {
        refuse_client(client);
        close_fd(&target);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(target, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    TAILQ_INSERT_TAIL(&p->lines, line, link);
    p->counts[CUTTING_OPEN]++;
    for (int d = 0; d < 2; d++)
        if (p->plans[d].on)
            draw(&p->plans[d], line);
}

static void accept_clients(cutting_proxy *p, int64_t now)
{
    while (p->listener >= 0 && p->counts[CUTTING_OPEN] < p->options.most) {
        int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        carry(p, fd, now);
    }
}

static void sweep(cutting_proxy *p)
{
    cutting_line *next;
    for (cutting_line *line = TAILQ_FIRST(&p->lines); line; line = next) {
        next = TAILQ_NEXT(line, link);
        if (line->most_held > p->counts[CUTTING_MOST_HELD])
            p->counts[CUTTING_MOST_HELD] = line->most_held;
        if (line->stage != LINE_OVER)
            continue;
        TAILQ_REMOVE(&p->lines, line, link);
        cutting_line_free(line);
        p->counts[CUTTING_OPEN]--;
    }
}

/* Polls without the lock; returns the size of the poll set. */
static nfds_t wait_for_work(cutting_proxy *p)
{
    int64_t now = now_ms(), at = p->listen_at;
    nfds_t count = FIRST_LINE;
    cutting_line *line;
    bool room = p->counts[CUTTING_OPEN] < p->options.most;
    p->set[0] = (struct pollfd){.fd = p->bell, .events = POLLIN};
    p->set[1] = (struct pollfd){.fd = room ? p->listener : -1, .events = POLLIN};
    TAILQ_FOREACH(line, &p->lines, link) {
        int64_t wanted = cutting_line_wants(line, p->set + count, now);
        at = wanted < at ? wanted : at;
        count += 2;
    }
    int timeout = -1;
    if (at != CUTTING_NEVER)
        timeout = at <= now ? 0 : at - now > 60000 ? 60000 : (int)(at - now);
    pthread_mutex_unlock(&p->lock);
    if (poll(p->set, count, timeout) < 0)
        for (nfds_t i = 0; i < count; i++)
            p->set[i].revents = 0;
    pthread_mutex_lock(&p->lock);
    return count;
}

static void turn(cutting_proxy *p, nfds_t polled)
{
    int64_t now = now_ms();
    uint64_t rings;
    cutting_line *line;
    struct pollfd *pair = p->set + FIRST_LINE;
    if (p->set[0].revents && read(p->bell, &rings, sizeof rings) < 0)
        abort();
    TAILQ_FOREACH(line, &p->lines, link) {
        if (pair == p->set + polled)
            break;
        cutting_line_turn(line, pair, now, p->counts + CUTTING_BYTES_UP);
        pair += 2;
    }
    if (p->set[1].revents)
        accept_clients(p, now);
    if (p->listen_at <= now && !open_listener(p))
        p->listen_at = now + 10; /* no descriptor is free, perhaps only for a moment */
    if (p->asked) {
        p->asked->run(p, p->asked);
        p->asked = NULL;
    }
    follow_plans(p, now);
    sweep(p);
}

static void *run_proxy(void *argument)
{
    cutting_proxy *p = argument;
    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        turn(p, wait_for_work(p));
        pthread_cond_broadcast(&p->turned);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- commands ---- */

static void ring(cutting_proxy *p)
{
    const uint64_t one = 1;
    if (write(p->bell, &one, sizeof one) < 0)
        abort();
}

static void ask(cutting_proxy *p, command *c)
{
    pthread_mutex_lock(&p->lock);
    while (p->asked)
        pthread_cond_wait(&p->turned, &p->lock);
    p->asked = c;
    ring(p);
    while (p->asked == c)
        pthread_cond_wait(&p->turned, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void run_cut_all(cutting_proxy *p, command *c)
{
    cutting_line *line;
    TAILQ_FOREACH(line, &p->lines, link)
        c->cut += cutting_line_cut(line, c->how, false, now_ms());
    p->counts[CUTTING_CUTS] += c->cut;
}

size_t cutting_proxy_cut_all(cutting_proxy *p, cutting_how how)
{
    command c = {.run = run_cut_all, .how = how};
    ask(p, &c);
    return c.cut;
}

static void run_plan(cutting_proxy *p, command *c)
{
    active_plan *active = &p->plans[c->plan->direction];
    cutting_line *line;
    active->plan = *c->plan;
    active->on = true;
    active->left = c->plan->times > 0 ? c->plan->times : -1;
    active->turn++;
    TAILQ_FOREACH(line, &p->lines, link)
        draw(active, line);
}

void cutting_proxy_plan(cutting_proxy *p, const cutting_plan *plan)
{
    command c = {.run = run_plan, .plan = plan};
    if (plan->max < plan->min)
        abort();
    ask(p, &c);
}

static void run_plan_nothing(cutting_proxy *p, command *c)
{
    forget_cuts(p, (int)c->direction);
}

void cutting_proxy_plan_nothing(cutting_proxy *p, cutting_direction direction)
{
    command c = {.run = run_plan_nothing, .direction = direction};
    ask(p, &c);
}

static void run_refuse(cutting_proxy *p, command *c)
{
    if (c->ms == 0) {
        c->fault = open_listener(p) ? 0 : errno;
        return;
    }
    close_fd(&p->listener);
    p->listen_at = c->ms < 0 ? CUTTING_NEVER : now_ms() + c->ms;
}

bool cutting_proxy_refuse(cutting_proxy *p, int64_t ms)
{
    command c = {.run = run_refuse, .ms = ms};
    ask(p, &c);
    errno = c.fault;
    return c.fault == 0;
}

uint64_t cutting_proxy_get(cutting_proxy *p, cutting_count what)
{
    pthread_mutex_lock(&p->lock);
    uint64_t value = p->counts[what];
    pthread_mutex_unlock(&p->lock);
    return value;
}

bool cutting_proxy_await(cutting_proxy *p, cutting_count what, uint64_t least,
                         int timeout_ms)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_ms / 1000;
    end.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&p->lock);
    int late = 0;
    while (p->counts[what] < least && !late)
        late = pthread_cond_timedwait(&p->turned, &p->lock, &end);
    bool reached = p->counts[what] >= least;
    pthread_mutex_unlock(&p->lock);
    return reached;
}

/* ---- start and stop ---- */

uint16_t cutting_proxy_port(const cutting_proxy *p)
{
    return ntohs(p->own.sin_port);
}

static bool take_options(cutting_proxy *p, const cutting_options *options)
{
    const char *path = options->target_path, *host = options->target_host;
    p->options = *options;
    p->options.room = options->room ? options->room : DEFAULT_ROOM;
    p->options.most = options->most ? options->most : DEFAULT_MOST;
    p->target = (struct sockaddr_in){.sin_family = AF_INET,
                                     .sin_port = htons(options->target_port)};
    errno = EINVAL;
    if (inet_pton(AF_INET, host ? host : "127.0.0.1", &p->target.sin_addr) != 1 ||
        (path && strlen(path) >= sizeof p->path))
        return false;
    p->options.target_host = NULL;
    p->options.target_path = path ? strcpy(p->path, path) : NULL;
    p->set = calloc(FIRST_LINE + 2 * p->options.most, sizeof *p->set);
    return p->set != NULL;
}

/* The thread blocks all signals: the threads of the test handle them. */
static int start_thread(cutting_proxy *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int fault = pthread_create(&p->thread, NULL, run_proxy, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return fault;
}

static void free_proxy(cutting_proxy *p)
{
    cutting_line *line;
    while ((line = TAILQ_FIRST(&p->lines))) {
        TAILQ_REMOVE(&p->lines, line, link);
        cutting_line_free(line);
    }
    close_fd(&p->listener);
    close_fd(&p->holder);
    close_fd(&p->bell);
    pthread_cond_destroy(&p->turned);
    pthread_mutex_destroy(&p->lock);
    free(p->set);
    free(p);
}

bool cutting_proxy_start(const cutting_options *options, cutting_proxy **proxy)
{
    cutting_proxy *p = calloc(1, sizeof *p);
    pthread_condattr_t monotonic;
    if (!p)
        return false;
    TAILQ_INIT(&p->lines);
    p->bell = p->holder = p->listener = -1;
    p->listen_at = CUTTING_NEVER;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->turned, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int fault = 0;
    if (!take_options(p, options) || !open_port(p) ||
        (p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        fault = errno;
    else
        fault = start_thread(p);
    if (fault) {
        free_proxy(p);
        errno = fault;
        return false;
    }
    *proxy = p;
    return true;
}

void cutting_proxy_stop(cutting_proxy *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    ring(p);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    free_proxy(p);
}
