/* AS-38 with two server processes on one SQLite file and 16 threads: a client that is
 * told of a task asks the other server for it at once. label: threads
 *
 *     SEGUE_ROUNDS=<n>   number of tasks, 1,000 by default */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/sqlite_kit.h"

enum { THREADS = 16, LINE = 4096 };

#define META                                                                             \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","             \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"t\",\"version\":\"0\"},"         \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":{"                   \
    "\"io.modelcontextprotocol/tasks\":{}}}}"

typedef struct server {
    pid_t pid;
    FILE *in; /* the server's standard input */
    FILE *out;
    pthread_mutex_t lock;
    pthread_t reader;
    struct seat *seats;
} server;

/* A thread at a server: it has one request at a time, whose id is the number of the
 * thread. */
typedef struct seat {
    sem_t answered;
    char answer[LINE];
} seat;

typedef struct player {
    pthread_t thread;
    server *servers;
    int number;
    int rounds;
    char fault[LINE];
} player;

/* ---- servers ---- */

static void *read_answers(void *arg)
{
    server *s = arg;
    char line[LINE];
    while (fgets(line, sizeof line, s->out)) {
        const char *id = strstr(line, "\"id\":");
        int number = id ? atoi(id + 5) : -1;
        if (number < 0 || number >= THREADS)
            continue;
        /* ordered behind the thread's use of its last answer */
        pthread_mutex_lock(&s->lock);
        memcpy(s->seats[number].answer, line, sizeof line);
        pthread_mutex_unlock(&s->lock);
        sem_post(&s->seats[number].answered);
    }
    return NULL;
}

static void start_server(server *s, const char *path)
{
    int to[2], from[2];
    assert_int_equal(pipe(to) | pipe(from), 0);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (!s->pid) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        execl(SEGUE_FIXTURE_SERVER, SEGUE_FIXTURE_SERVER, path, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    s->in = fdopen(to[1], "w");
    s->out = fdopen(from[0], "r");
    s->seats = calloc(THREADS, sizeof *s->seats);
    assert_true(s->in && s->out && s->seats);
    for (int i = 0; i < THREADS; i++)
        sem_init(&s->seats[i].answered, 0, 0);
    pthread_mutex_init(&s->lock, NULL);
    assert_int_equal(pthread_create(&s->reader, NULL, read_answers, s), 0);
}

static void end_server(server *s)
{
    int status;
    fclose(s->in);
    pthread_join(s->reader, NULL);
    fclose(s->out);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < THREADS; i++)
        sem_destroy(&s->seats[i].answered);
    pthread_mutex_destroy(&s->lock);
    free(s->seats);
}

static const char *ask(server *s, int number, const char *method, const char *params)
{
    pthread_mutex_lock(&s->lock);
    fprintf(s->in,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":{%s," META
            "}}\n",
            number, method, params);
    fflush(s->in);
    pthread_mutex_unlock(&s->lock);
    while (sem_wait(&s->seats[number].answered))
        ;
    return s->seats[number].answer;
}

/* ---- players ---- */

/* cmocka's asserts belong to the main thread, so this only reports. */
static void *play(void *arg)
{
    player *p = arg;
    for (int i = 0; i < p->rounds && !*p->fault; i++) {
        server *here = &p->servers[(p->number + i) % 2];
        server *there = &p->servers[(p->number + i + 1) % 2];
        char params[256], id[160] = "";
        const char *made = ask(here, p->number, "tools/call",
                               "\"name\":\"big\",\"arguments\":{\"bytes\":1}");
        const char *mark = strstr(made, "\"taskId\":\"");
        if (!mark || sscanf(mark, "\"taskId\":\"%150[^\"]", id) != 1) {
            snprintf(p->fault, sizeof p->fault, "%s", made);
            break;
        }
        snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
        const char *got = ask(there, p->number, "tasks/get", params);
        if (!strstr(got, id) || strstr(got, "\"error\""))
            snprintf(p->fault, sizeof p->fault, "%s", got);
    }
    return NULL;
}

static void a_task_is_there_for_both_servers_at_once(void **state) /* AS-38. */
{
    (void)state;
    const char *text = getenv("SEGUE_ROUNDS");
    int rounds = text ? atoi(text) : 1000;
    server servers[2];
    static player players[THREADS];
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 2; i++)
        start_server(&servers[i], test_path("db"));
    for (int i = 0; i < THREADS; i++) {
        players[i].servers = servers;
        players[i].number = i;
        players[i].rounds = (rounds + THREADS - 1) / THREADS;
        assert_int_equal(pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(players[i].thread, NULL);
    for (int i = 0; i < 2; i++)
        end_server(&servers[i]);
    for (int i = 0; i < THREADS; i++)
        assert_string_equal(players[i].fault, "");
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(a_task_is_there_for_both_servers_at_once,
                               test_directory_setup),
    };
    if (test_directory_make())
        return 1;
    int failures = cmocka_run_group_tests(cases, NULL, NULL);
    test_directory_remove();
    return failures ? 1 : 0;
}
