/* More messages from Redis than a store can read. The thread that reads them also renews
 * the lease, wakes the listeners, and ends with the store. The Redis here is simulated:
 * it knows the commands that the store needs and never runs out of messages. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/redis_script.h"
#include "store/store.h"

#include <cmocka.h>

#define LEASE_MS 150
#define BEATS 5 /* lease renewals in the flood, each a third of a lease after the last */
#define PATIENCE_S 120
#define CONNECTIONS 16
#define ARGS_MAX 128
#define ROOM ((size_t)512 * 1024)
#define NEWS_IDS 600 /* ids noted one by one: so many make reading slow */
#define FOLLOWS_MAX (20 * NEWS_IDS)
#define IDS_IN_ONE 8

/* ---- a simulated Redis ---- */

typedef struct connection {
    int fd; /* -1 = free */
    bool hears;
    int loaded; /* number of loaded scripts */
    char in[ROOM];
    size_t in_len;
    char out[ROOM];
    size_t out_len;
} connection;

typedef struct fake {
    int listening;
    int wake;
    uint16_t port;
    pthread_t thread;
    connection connections[CONNECTIONS];
    char *news; /* whole messages, sent again and again */
    size_t news_len;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    bool floods;
    int beats;   /* lease renewals in the flood */
    int follows; /* number of follow reports in the flood */
    int rings;
} fake;

static void say(connection *c, const char *bytes, size_t len)
{
    if (c->out_len + len > ROOM)
        abort(); /* the client does not read the answers */
    memcpy(c->out + c->out_len, bytes, len);
    c->out_len += len;
}

static void say_text(connection *c, const char *text)
{
    say(c, text, strlen(text));
}

static void say_bulk(connection *c, const char *text)
{
    char head[32];
    snprintf(head, sizeof head, "$%zu\r\n", strlen(text));
    say_text(c, head);
    say_text(c, text);
    say_text(c, "\r\n");
}

static void note_beat(fake *f)
{
    pthread_mutex_lock(&f->lock);
    f->beats += f->floods;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* Counts a follow report, and stops a flood that never lets the store go on. */
static void note_follow(fake *f)
{
    pthread_mutex_lock(&f->lock);
    f->follows += f->floods;
    f->floods = f->floods && f->follows < FOLLOWS_MAX;
    pthread_mutex_unlock(&f->lock);
}

/* The name of a script is the letter of its position among the loaded ones. */
static void run_script(fake *f, connection *c, char name)
{
    switch (name - 'a') {
    case SGI_REDIS_OPEN:
        say_text(c, "*2\r\n");
        say_bulk(c, "1.chance");
        say_text(c, ":2\r\n");
        break;
    case SGI_REDIS_BEAT:
        note_beat(f);
        say_text(c, "*5\r\n:0\r\n:0\r\n:0\r\n:2\r\n:0\r\n");
        break;
    case SGI_REDIS_FOLLOW:
        note_follow(f);
        say_text(c, ":0\r\n");
        break;
    default:
        say_text(c, ":0\r\n");
    }
}

static void do_command(fake *f, connection *c, int count, char **args)
{
    char sha[41] = "";
    if (!strcmp(args[0], "INFO")) {
        say_bulk(c, "redis_version:7.0.0\r\nrole:master\r\n"
                    "run_id:0123456789012345678901234567890123456789\r\n");
    } else if (!strcmp(args[0], "SCRIPT")) {
        memset(sha, 'a' + c->loaded++, 40);
        say_bulk(c, sha);
    } else if (!strcmp(args[0], "EVALSHA")) {
        run_script(f, c, *args[1]);
    } else if (!strcmp(args[0], "SUBSCRIBE")) {
        for (int i = 1; i < count; i++) {
            say_text(c, "*3\r\n");
            say_bulk(c, "subscribe");
            say_bulk(c, args[i]);
            say_text(c, i == 1 ? ":1\r\n" : ":2\r\n");
        }
        c->hears = true;
    } else {
        say_text(c, c->hears ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+OK\r\n");
    }
}

/* Returns the number behind a mark and where its line ends; NULL when the line is
 * incomplete. */
static char *number_at(const connection *c, char *at, char mark, int *number)
{
    char *end = memchr(at, '\n', c->in_len - (size_t)(at - c->in));
    if (!end)
        return NULL;
    if (*at != mark)
        abort();
    *number = atoi(at + 1);
    return end + 1;
}

/* Takes one whole command; returns false when there is none. */
static bool take_command(fake *f, connection *c)
{
    char *args[ARGS_MAX];
    int count, len;
    char *at = c->in_len ? number_at(c, c->in, '*', &count) : NULL;
    if (at && count > ARGS_MAX)
        abort();
    for (int i = 0; at && i < count; i++) {
        char *text = at < c->in + c->in_len ? number_at(c, at, '$', &len) : NULL;
        at = text && text + len + 2 <= c->in + c->in_len ? text + len + 2 : NULL;
        args[i] = text;
        if (at)
            text[len] = 0;
    }
    if (!at)
        return false;
    do_command(f, c, count, args);
    c->in_len -= (size_t)(at - c->in);
    memmove(c->in, at, c->in_len);
    return true;
}

static void close_connection(connection *c)
{
    close(c->fd);
    c->fd = -1;
}

static void read_some(fake *f, connection *c)
{
    ssize_t n = read(c->fd, c->in + c->in_len, ROOM - c->in_len);
    if (n > 0) {
        c->in_len += (size_t)n;
        while (take_command(f, c))
            ;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_connection(c);
    }
}

static bool is_flooded(fake *f, const connection *c)
{
    pthread_mutex_lock(&f->lock);
    bool floods = f->floods && c->hears;
    pthread_mutex_unlock(&f->lock);
    return floods;
}

/* Writes until the other side takes no more: it must always find something to read. */
static void write_all(fake *f, connection *c)
{
    bool floods = is_flooded(f, c);
    while (c->out_len || floods) {
        if (floods && !c->out_len)
            say(c, f->news, f->news_len);
        ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            close_connection(c);
            return;
        }
        if (n < 0)
            return;
        c->out_len -= (size_t)n;
        memmove(c->out, c->out + n, c->out_len);
    }
}

static void let_in(fake *f)
{
    int fd = accept(f->listening, NULL, NULL);
    connection *c = f->connections;
    while (c < f->connections + CONNECTIONS && c->fd >= 0)
        c++;
    if (fd < 0 || c == f->connections + CONNECTIONS)
        abort();
    fcntl(fd, F_SETFL, O_NONBLOCK);
    c->fd = fd;
    c->hears = false;
    c->loaded = 0;
    c->in_len = c->out_len = 0;
}

static void serve_once(fake *f)
{
    struct pollfd fds[CONNECTIONS + 2];
    for (int i = 0; i < CONNECTIONS; i++) {
        const connection *c = &f->connections[i];
        bool writes = c->fd >= 0 && (c->out_len || is_flooded(f, c));
        fds[i] = (struct pollfd){c->fd, (short)(writes ? POLLIN | POLLOUT : POLLIN), 0};
    }
    fds[CONNECTIONS] = (struct pollfd){f->listening, POLLIN, 0};
    fds[CONNECTIONS + 1] = (struct pollfd){f->wake, POLLIN, 0};
    poll(fds, CONNECTIONS + 2, -1);
    uint64_t count;
    if (fds[CONNECTIONS + 1].revents && read(f->wake, &count, sizeof count) < 0)
        abort();
    for (int i = 0; i < CONNECTIONS; i++) {
        connection *c = &f->connections[i];
        if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
            read_some(f, c);
        if (c->fd >= 0)
            write_all(f, c);
    }
    if (fds[CONNECTIONS].revents)
        let_in(f);
}

static void *serve(void *user)
{
    fake *f = user;
    for (;;) {
        pthread_mutex_lock(&f->lock);
        bool stopping = f->stopping;
        pthread_mutex_unlock(&f->lock);
        if (stopping)
            return NULL;
        serve_once(f);
    }
}

/* Writes that this many operations grew, over and over. */
static void write_news(fake *f)
{
    char *at = f->news = malloc(ROOM / 2);
    assert_non_null(at);
    for (int first = 0; first < NEWS_IDS; first += IDS_IN_ONE) {
        at += sprintf(at, "*3\r\n$7\r\nmessage\r\n$11\r\n{segue}:all\r\n$%d\r\nG",
                      1 + IDS_IN_ONE * SEGUE_STORE_ID_SIZE);
        for (int i = 0; i < IDS_IN_ONE; i++)
            at += sprintf(at, "%0*d", SEGUE_STORE_ID_SIZE, first + i);
        at += sprintf(at, "\r\n");
    }
    f->news_len = (size_t)(at - f->news);
}

static void wake_up(fake *f)
{
    uint64_t one = 1;
    assert_int_equal(write(f->wake, &one, sizeof one), sizeof one);
}

static void set_flood(fake *f)
{
    pthread_mutex_lock(&f->lock);
    f->floods = true;
    pthread_mutex_unlock(&f->lock);
    wake_up(f);
}

static void start(fake *f)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    for (int i = 0; i < CONNECTIONS; i++)
        f->connections[i].fd = -1;
    f->wake = eventfd(0, 0);
    f->listening = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(f->listening, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(f->listening, 16), 0);
    getsockname(f->listening, (struct sockaddr *)&address, &len);
    f->port = ntohs(address.sin_port);
    write_news(f);
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->changed, &attr);
    pthread_condattr_destroy(&attr);
    assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
}

static void stop(fake *f)
{
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_mutex_unlock(&f->lock);
    wake_up(f);
    pthread_join(f->thread, NULL);
    for (int i = 0; i < CONNECTIONS; i++)
        if (f->connections[i].fd >= 0)
            close(f->connections[i].fd);
    close(f->listening);
    close(f->wake);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f->news);
    free(f);
}

/* ---- cases ---- */

static void rung(void *user)
{
    fake *f = user;
    pthread_mutex_lock(&f->lock);
    f->rings++;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* Waits for the lease renewals within the flood, but no longer than a busy machine
 * needs. */
static void await_beats_and_a_ring(fake *f)
{
    struct timespec end;
    int late = 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&f->lock);
    while (!late && (f->beats < BEATS || !f->rings))
        late = pthread_cond_timedwait(&f->changed, &f->lock, &end);
    int beats = f->beats, rings = f->rings;
    pthread_mutex_unlock(&f->lock);
    if (late)
        fail_msg("%d beats and %d rings while news came", beats, rings);
}

static fake *open_flooded(segue_store **store, sgi_store_listener **listener)
{
    char url[64];
    fake *f = calloc(1, sizeof *f);
    segue_store_options options = {.struct_size = sizeof options, .lease_ms = LEASE_MS};
    start(f);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", f->port);
    assert_int_equal(sgi_store_redis_new(url, &options, store, NULL, 0), SEGUE_OK);
    assert_int_equal(sgi_store_listen(*store, rung, f, listener), SEGUE_OK);
    set_flood(f);
    return f;
}

static void a_flood_of_news_does_not_stop_the_beat(void **state)
{
    (void)state;
    segue_store *store;
    sgi_store_listener *listener;
    fake *f = open_flooded(&store, &listener);
    await_beats_and_a_ring(f);
    sgi_store_unlisten(listener);
    sgi_store_unref(store); /* the messages still do not end */
    stop(f);
}

static int32_t ignore(void *user, const segue_store_news *news)
{
    (void)user;
    (void)news;
    return 0;
}

static int follows_of(fake *f)
{
    pthread_mutex_lock(&f->lock);
    int follows = f->follows;
    pthread_mutex_unlock(&f->lock);
    return follows;
}

/* The operations that grew are not followed here, and Redis is told so for each. Messages
 * that come meanwhile are reported the next time. */
static void a_flood_of_news_is_told_in_parts(void **state)
{
    (void)state;
    segue_store *store;
    sgi_store_listener *listener;
    fake *f = open_flooded(&store, &listener);
    await_beats_and_a_ring(f);
    for (int i = 0, before = 0; i < 10; i++) {
        int64_t within_ms;
        assert_int_equal(sgi_store_deliver_news(listener, ignore, NULL, &within_ms),
                         SEGUE_OK);
        int told = follows_of(f);
        assert_in_range(told - before, 0, NEWS_IDS);
        before = told;
    }
    assert_true(follows_of(f) > 0);
    sgi_store_unlisten(listener);
    sgi_store_unref(store);
    stop(f);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_flood_of_news_does_not_stop_the_beat),
        cmocka_unit_test(a_flood_of_news_is_told_in_parts),
    };
    return cmocka_run_group_tests_name("redis flood", cases, NULL, NULL);
}
