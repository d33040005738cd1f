/* Child processes. The child is this program again, with a mode as its argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/fake_engine_body.h"
#include "support/transport_suite.h"

/* ---- the child ---- */

/* Sends back what it reads. The input "EXIT n" ends it with status n, "SIGNAL n" by a
 * signal. */
static int child_echo(void)
{
    static char buffer[65536];
    ssize_t got;
    while ((got = read(0, buffer, sizeof buffer - 1)) > 0) {
        buffer[got] = 0;
        if (!strncmp(buffer, "EXIT ", 5))
            _exit(atoi(buffer + 5));
        if (!strncmp(buffer, "SIGNAL ", 7))
            raise(atoi(buffer + 7));
        for (ssize_t sent = 0, n; sent < got; sent += n)
            if ((n = write(1, buffer + sent, (size_t)(got - sent))) < 0)
                return 1;
    }
    return 0;
}

static int child_wait_for_signal(void)
{
    if (write(1, "ready\n", 6) != 6)
        return 1;
    for (;;)
        pause();
}

static void print_signals(void)
{
    sigset_t mask;
    struct sigaction pipe_action, term_action;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigaction(SIGPIPE, NULL, &pipe_action);
    sigaction(SIGTERM, NULL, &term_action);
    printf("blocked %d pipe %d term %d\n", sigismember(&mask, SIGTERM),
           pipe_action.sa_handler != SIG_DFL, term_action.sa_handler != SIG_DFL);
}

/* Prints how many descriptors are open besides the standard three. */
static void print_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(directory))
            count++;
    printf("descriptors %d\n", count);
    closedir(directory);
}

static void print_surroundings(void)
{
    char dir[4096];
    const char *value = getenv("SPAWN_TEST");
    printf("%s %s %s\n", value ? value : "-", getenv("HOME") ? "HOME" : "-",
           getcwd(dir, sizeof dir));
}

static int child_complain(void)
{
    fputs("one\ntwo\n\nlast without end", stderr);
    return child_echo();
}

/* Prints what its standard error is. */
static int child_tell_errors(void)
{
    char target[4096];
    ssize_t len = readlink("/proc/self/fd/2", target, sizeof target - 1);
    printf("errors go to %.*s\n", len < 0 ? 7 : (int)len, len < 0 ? "nowhere" : target);
    return 0;
}

/* Writes its input to the file that is its argument. */
static int child_keep(const char *name)
{
    char buffer[4096];
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t got;
    while ((got = read(0, buffer, sizeof buffer)) > 0)
        if (write(fd, buffer, (size_t)got) != got)
            return 1;
    return 0;
}

static int run_child(int argc, char **argv)
{
    const char *mode = argv[1];
    if (!strcmp(mode, "--echo"))
        return child_echo();
    if (!strcmp(mode, "--stubborn"))
        return child_wait_for_signal();
    if (!strcmp(mode, "--deaf")) {
        signal(SIGTERM, SIG_IGN);
        return child_wait_for_signal();
    }
    if (!strcmp(mode, "--silent")) { /* prints nothing more, and stays */
        close(1);
        for (;;)
            pause();
    }
    if (!strcmp(mode, "--say")) {
        puts(argv[2]);
        return 5;
    }
    if (!strcmp(mode, "--mute")) {
        close(1);
        while (read(0, argv[1], 1) > 0)
            ;
        return 0;
    }
    if (!strcmp(mode, "--complain"))
        return child_complain();
    if (!strcmp(mode, "--errors"))
        return child_tell_errors();
    if (!strcmp(mode, "--keep") && argc > 2)
        return child_keep(argv[2]);
    print_signals();
    print_descriptors();
    print_surroundings();
    return 0;
}

/* ---- the rig ---- */

typedef struct plan {
    const char *mode;
    const char *argument;
    const char *program;
    const char *const *env;
    const char *dir;
    bool restart;
    bool complains;
    int64_t timeout_ms; /* both time limits; 0 = default */
    segue_hooks *hooks;
    char text[4096]; /* standard error, one line per line */
    int lines;
    int freed;
} plan;

typedef struct fake_clock {
    segue_hooks hooks;
    int64_t now;
} fake_clock;

static int64_t read_clock(void *user)
{
    return ((fake_clock *)user)->now;
}

static void set_clock(fake_clock *clock, plan *p)
{
    *clock = (fake_clock){{sizeof clock->hooks, clock, read_clock, NULL, NULL}, 1000};
    p->hooks = &clock->hooks;
}

static void on_stderr(void *user, const char *text, size_t len)
{
    plan *p = user;
    assert_int_equal(strlen(text), len);
    assert_int_equal(p->freed, 0);
    snprintf(p->text + strlen(p->text), sizeof p->text - strlen(p->text), "%s|", text);
    p->lines++;
}

static void on_free(void *user)
{
    ((plan *)user)->freed++;
}

static segue_status open_planned(suite_rig *rig, plan *p)
{
    const char *argv[] = {p->program ? p->program : "/proc/self/exe", p->mode,
                          p->argument, NULL};
    segue_spawn_options options = {.struct_size = sizeof options,
                                   .argv = argv,
                                   .env = p->env,
                                   .working_dir = p->dir,
                                   .restart = p->restart,
                                   .close_timeout_ms = p->timeout_ms,
                                   .terminate_timeout_ms = p->timeout_ms,
                                   .user = p,
                                   .free_user = on_free,
                                   .on_stderr = p->complains ? on_stderr : NULL};
    return sgi_transport_spawn(rig->rt, &options, &rig->near);
}

static segue_status open_echo(suite_rig *rig)
{
    static plan p;
    p = (plan){.mode = "--echo", .complains = true};
    return open_planned(rig, &p);
}

static void end_child(suite_rig *rig)
{
    fake_conn_send(rig->conn, "EXIT 3\n", 7);
}

/* Reads the child's state without waiting for the child, because a wait would take the
 * exit status from the transport. */
static bool has_children(void)
{
    siginfo_t info;
    return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

/* Checks that no child of this process is left, not even as a zombie. */
static void expect_no_children(suite_rig *rig)
{
    (void)rig;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static const suite_kind spawn_kind = {.name = "spawn",
                                      .open = open_echo,
                                      .end_far = end_child,
                                      .clean = expect_no_children};

static void set_up(suite_rig *rig, plan *p)
{
    *rig = (suite_rig){.kind = &spawn_kind, .fd = -1};
    test_mem_init(&rig->mem);
    segue_runtime_options options = {
        .struct_size = sizeof options, .allocator = &rig->mem.mem, .hooks = p->hooks};
    assert_int_equal(sgi_runtime_new(&options, &rig->rt, NULL), SEGUE_OK);
    assert_int_equal(open_planned(rig, p), SEGUE_OK);
    rig->conn = fake_conn_new(rig->rt, rig->near);
    fake_conn_attach(rig->conn);
}

static void settle(suite_rig *rig)
{
    for (int i = 0; i < 10; i++)
        sgi_runtime_dispatch(rig->rt, 1, 0, NULL);
}

static bool has_line(const sgi_conn *conn, const char *line)
{
    return conn->in.len && memmem(conn->in.p, conn->in.len, line, strlen(line));
}

/* ---- start ---- */

static void a_program_that_is_not_there_is_a_loss_with_a_reason(void **state)
{
    plan p = {.program = "/nonexistent/server"};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->starts, 1);
    assert_int_equal(rig.conn->losses, 1);
    assert_string_equal(rig.conn->why,
                        "cannot start /nonexistent/server: No such file or directory");
    RUN_UNTIL(rig.rt, p.freed == 1);
    suite_tear_down(&rig);
    assert_int_equal(p.freed, 1);
}

static void a_directory_that_is_not_there_is_named(void **state)
{
    plan p = {.mode = "--echo", .dir = "/nonexistent"};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "cannot start /proc/self/exe in /nonexistent: "
                                       "No such file or directory");
    suite_tear_down(&rig);
}

static void a_program_is_looked_up_in_the_path(void **state)
{
    plan p = {.program = "cat"};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    fake_conn_send(rig.conn, "hello\n", 6);
    RUN_UNTIL(rig.rt, rig.conn->in_len == 6);
    suite_tear_down(&rig);
}

static void a_child_starts_with_a_clean_slate(void **state)
{
    static const char *const env[] = {"SPAWN_TEST=yes", NULL};
    plan p = {.mode = "--look", .env = env, .dir = "/"};
    int leaky = dup(1); /* this descriptor is not close-on-exec */
    sigset_t term;
    suite_rig rig;
    (void)state;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    signal(SIGPIPE, SIG_IGN);
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    signal(SIGPIPE, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &term, NULL);
    close(leaky);
    assert_true(has_line(rig.conn, "blocked 0 pipe 0 term 0\n"));
    assert_true(has_line(rig.conn, "descriptors 0\n"));
    assert_true(has_line(rig.conn, "yes - /\n"));
    suite_tear_down(&rig);
}

static void the_environment_is_inherited_by_default(void **state)
{
    plan p = {.mode = "--look"};
    suite_rig rig;
    (void)state;
    setenv("SPAWN_TEST", "inherited", 1);
    setenv("HOME", "/", 0);
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    unsetenv("SPAWN_TEST");
    assert_true(has_line(rig.conn, "inherited HOME "));
    suite_tear_down(&rig);
}

/* Checks what a child prints of its standard error, with that of this process as it is
 * now. */
static void expect_errors_go_to(const char *target)
{
    plan p = {.mode = "--errors"};
    char line[4096];
    suite_rig rig;
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    snprintf(line, sizeof line, "errors go to %s\n", target);
    bool is_so = has_line(rig.conn, line);
    suite_tear_down(&rig);
    assert_true(is_so);
}

/* Node makes standard error close-on-exec. */
static void standard_error_that_is_close_on_exec_is_inherited(void **state)
{
    char name[] = "/tmp/spawn_errors_XXXXXX";
    int saved = fcntl(2, F_DUPFD_CLOEXEC, 10), file = mkstemp(name);
    (void)state;
    assert_true(saved >= 0 && file >= 0);
    assert_int_equal(dup3(file, 2, O_CLOEXEC), 2);
    expect_errors_go_to(name);
    assert_int_equal(fcntl(2, F_GETFD), FD_CLOEXEC); /* in this process the flag stays as
                                                      * it was */
    dup2(saved, 2);
    close(saved);
    close(file);
    unlink(name);
}

/* No file of the library gets this descriptor number. */
static void standard_error_that_is_closed_is_the_null_device(void **state)
{
    int saved = fcntl(2, F_DUPFD_CLOEXEC, 10);
    (void)state;
    assert_true(saved >= 0);
    close(2);
    expect_errors_go_to("/dev/null");
    ssize_t written = write(2, "x", 1);
    int fault = errno;
    dup2(saved, 2);
    close(saved);
    assert_int_equal(written, -1);
    assert_int_equal(fault, EBADF);
}

static void an_empty_command_is_refused(void **state)
{
    suite_rig rig;
    const char *nothing[] = {NULL}, *empty[] = {"", NULL};
    segue_spawn_options options = {.struct_size = sizeof options};
    (void)state;
    suite_set_up(&rig, &spawn_kind);
    segue_transport *transport = NULL;
    assert_int_equal(segue_transport_spawn(rig.rt, &options, &transport, NULL),
                     SEGUE_E_INVALID);
    options.argv = nothing;
    assert_int_equal(segue_transport_spawn(rig.rt, &options, &transport, NULL),
                     SEGUE_E_INVALID);
    options.argv = empty;
    assert_int_equal(segue_transport_spawn(rig.rt, &options, &transport, NULL),
                     SEGUE_E_INVALID);
    assert_null(transport);
    sgi_transport_free(rig.near);
    suite_tear_down(&rig);
}

/* ---- end ---- */

static void the_exit_status_is_told(void **state)
{
    plan p = {.mode = "--echo"};
    fake_clock clock;
    suite_rig rig;
    (void)state;
    set_clock(&clock, &p); /* waits for its end, however long a busy machine takes */
    set_up(&rig, &p);
    fake_conn_send(rig.conn, "EXIT 3\n", 7);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "the program exited with status 3");
    suite_tear_down(&rig);
}

static void the_signal_that_ended_it_is_told(void **state)
{
    plan p = {.mode = "--echo"};
    fake_clock clock;
    suite_rig rig;
    (void)state;
    set_clock(&clock, &p); /* waits for its end, however long a busy machine takes */
    set_up(&rig, &p);
    fake_conn_send(rig.conn, "SIGNAL 9\n", 9);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "the program was ended by signal 9");
    suite_tear_down(&rig);
}

static void nothing_is_started_once_the_runtime_stops(void **state)
{
    char name[] = "spawn_XXXXXX";
    plan p = {.mode = "--keep", .argument = name}; /* makes the file */
    suite_rig rig;
    (void)state;
    close(mkstemp(name));
    unlink(name);
    set_up(&rig, &p);
    suite_tear_down(&rig);
    assert_int_equal(p.freed, 1);
    assert_int_equal(access(name, F_OK), -1);
}

static void an_exit_is_seen_though_a_grandchild_holds_the_pipe(void **state)
{
    suite_rig rig;
    const char *argv[] = {"sh", "-c",
                          "echo hello;"
                          "(while kill -0 $PPID; do sleep 1; done) 2>/dev/null & exit 4",
                          NULL}; /* the grandchild lives as long as the test */
    segue_spawn_options options = {.struct_size = sizeof options, .argv = argv};
    (void)state;
    rig = (suite_rig){.kind = &spawn_kind, .fd = -1};
    test_mem_init(&rig.mem);
    segue_runtime_options rt_options = {.struct_size = sizeof rt_options,
                                        .allocator = &rig.mem.mem};
    assert_int_equal(sgi_runtime_new(&rt_options, &rig.rt, NULL), SEGUE_OK);
    assert_int_equal(sgi_transport_spawn(rig.rt, &options, &rig.near), SEGUE_OK);
    rig.conn = fake_conn_new(rig.rt, rig.near);
    fake_conn_attach(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "the program exited with status 4");
    assert_true(has_line(rig.conn, "hello\n")); /* its output from before is read */
    suite_tear_down(&rig);
}

static void a_child_that_closes_its_output_is_lost_and_let_go(void **state)
{
    plan p = {.mode = "--mute"};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->losses, 1);
    RUN_UNTIL(rig.rt, p.freed == 1); /* its input was closed, so it ended */
    suite_tear_down(&rig);
}

static void what_it_said_before_it_ended_waits_to_be_wanted(void **state)
{
    plan p = {.mode = "--say", .argument = "last words"};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    rig.conn->wants = false;
    RUN_UNTIL(rig.rt, rig.conn->up && !has_children());
    settle(&rig);
    assert_int_equal(rig.conn->losses, 0);
    fake_conn_want(rig.conn, true);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->in_len, 11);
    assert_string_equal(rig.conn->why, "the program exited with status 5");
    suite_tear_down(&rig);
}

static void everything_is_written_before_the_input_is_closed(void **state)
{
    static char text[200000];
    char name[] = "spawn_XXXXXX";
    int file = mkstemp(name);
    plan p = {.mode = "--keep", .argument = name};
    suite_rig rig;
    (void)state;
    memset(text, 'x', sizeof text);
    set_up(&rig, &p);
    fake_conn_send(rig.conn, text, sizeof text);
    fake_conn_close(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    unlink(name);
    assert_int_equal(lseek(file, 0, SEEK_END), sizeof text);
    assert_string_equal(rig.conn->why, "the program exited with status 0");
    close(file);
    suite_tear_down(&rig);
}

static void one_that_ignores_the_end_of_input_is_terminated_in_time(void **state)
{
    plan p = {.mode = "--stubborn"};
    fake_clock clock;
    suite_rig rig;
    (void)state;
    set_clock(&clock, &p);
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, has_line(rig.conn, "ready\n"));
    fake_conn_close(rig.conn);
    settle(&rig);
    clock.now += 1999;
    settle(&rig);
    assert_false(rig.conn->detached);
    clock.now += 1;
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "the program was ended by signal 15");
    suite_tear_down(&rig);
}

static void one_that_ignores_sigterm_is_killed_in_time(void **state)
{
    plan p = {.mode = "--deaf"};
    fake_clock clock;
    suite_rig rig;
    (void)state;
    set_clock(&clock, &p);
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, has_line(rig.conn, "ready\n"));
    fake_conn_close(rig.conn);
    settle(&rig);
    clock.now += 2000;
    settle(&rig);
    clock.now += 1999;
    settle(&rig);
    assert_false(rig.conn->detached);
    clock.now += 1;
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "the program was ended by signal 9");
    suite_tear_down(&rig);
}

static void freeing_the_runtime_ends_a_deaf_child_in_bounded_time(void **state)
{
    plan p = {.mode = "--deaf", .timeout_ms = 30};
    fake_clock clock;
    suite_rig rig;
    (void)state;
    set_clock(&clock, &p); /* the clock stands still: the runtime must wait in real
                            * time */
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, has_line(rig.conn, "ready\n"));
    int64_t begun = time(NULL);
    suite_tear_down(&rig);
    assert_true(time(NULL) - begun < 120); /* true even on a slow machine */
    assert_int_equal(p.freed, 1);
}

/* ---- restart ---- */

static void a_restart_brings_a_new_child(void **state)
{
    plan p = {.mode = "--echo", .restart = true};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    rig.conn->retry = true;
    assert_true(sgi_transport_can_reopen(rig.near));
    fake_conn_send(rig.conn, "EXIT 0\n", 7);
    RUN_UNTIL(rig.rt, rig.conn->starts == 2);
    assert_true(rig.conn->reopens);
    assert_int_equal(rig.conn->losses, 1);
    fake_conn_send(rig.conn, "hello\n", 6);
    RUN_UNTIL(rig.rt, has_line(rig.conn, "hello\n"));
    rig.conn->retry = false;
    fake_conn_close(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    suite_tear_down(&rig);
}

static void a_restart_waits_for_the_last_child_to_go(void **state)
{
    plan p = {.mode = "--silent", .restart = true};
    fake_clock clock;
    suite_rig rig;
    (void)state;
    set_clock(&clock, &p);
    set_up(&rig, &p);
    rig.conn->retry = true;
    RUN_UNTIL(rig.rt, rig.conn->up);
    for (int i = 0; !rig.conn->losses; i++) { /* the transport sees the end of the output,
                                               * then waits 100 ms */
        assert_true(i < 1000);
        settle(&rig);
        clock.now += 1;
    }
    settle(&rig);
    assert_int_equal(rig.conn->starts, 1);
    clock.now += 2000;
    RUN_UNTIL(rig.rt, rig.conn->starts == 2);
    fake_conn_close(rig.conn);
    for (int i = 0; !rig.conn->detached; i++) {
        assert_true(i < 1000);
        settle(&rig);
        clock.now += 100;
    }
    suite_tear_down(&rig);
}

static void a_lost_one_waits_to_be_reopened_or_closed(void **state)
{
    plan p = {.mode = "--echo", .restart = true};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    fake_conn_send(rig.conn, "EXIT 0\n", 7);
    RUN_UNTIL(rig.rt, rig.conn->losses == 1);
    settle(&rig);
    assert_false(rig.conn->detached);
    assert_true(fake_conn_reopen(rig.conn));
    RUN_UNTIL(rig.rt, rig.conn->up);
    fake_conn_send(rig.conn, "EXIT 0\n", 7);
    RUN_UNTIL(rig.rt, rig.conn->losses == 2);
    fake_conn_close(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    suite_tear_down(&rig);
}

static void a_program_that_cannot_be_started_can_be_tried_again(void **state)
{
    plan p = {.program = "/nonexistent/server", .restart = true};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    rig.conn->retry = true;
    RUN_UNTIL(rig.rt, rig.conn->losses >= 3);
    assert_false(rig.conn->detached);
    suite_tear_down(&rig);
}

static void without_restart_it_cannot_be_reopened(void **state)
{
    plan p = {.mode = "--echo"};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    RUN_UNTIL(rig.rt, rig.conn->up);
    assert_false(sgi_transport_can_reopen(rig.near));
    assert_false(fake_conn_reopen(rig.conn));
    suite_tear_down(&rig);
}

/* ---- standard error ---- */

static void standard_error_comes_line_by_line(void **state)
{
    plan p = {.mode = "--complain", .complains = true};
    suite_rig rig;
    (void)state;
    set_up(&rig, &p);
    fake_conn_send(rig.conn, "EXIT 0\n", 7);
    RUN_UNTIL(rig.rt, p.freed == 1);
    assert_string_equal(p.text, "one|two||last without end|");
    suite_tear_down(&rig);
    assert_int_equal(p.freed, 1);
}

static void user_is_freed_though_it_was_never_attached(void **state)
{
    plan p = {.mode = "--echo"};
    suite_rig rig;
    (void)state;
    suite_set_up(&rig, &spawn_kind);
    sgi_transport_free(rig.near);
    assert_int_equal(open_planned(&rig, &p), SEGUE_OK);
    sgi_transport_free(rig.near);
    assert_int_equal(p.freed, 0); /* free_user does not run inside the call */
    RUN_UNTIL(rig.rt, p.freed == 1);
    suite_tear_down(&rig);
}

static void user_is_freed_with_the_runtime(void **state)
{
    plan p = {.mode = "--echo"};
    suite_rig rig;
    (void)state;
    suite_set_up(&rig, &spawn_kind);
    sgi_transport_free(rig.near);
    assert_int_equal(open_planned(&rig, &p), SEGUE_OK);
    sgi_runtime_free(rig.rt);
    rig.rt = NULL;
    assert_int_equal(p.freed, 1);
    sgi_transport_free(rig.near);
    suite_tear_down(&rig);
    assert_int_equal(p.freed, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_is_not_there_is_a_loss_with_a_reason),
        cmocka_unit_test(a_directory_that_is_not_there_is_named),
        cmocka_unit_test(a_program_is_looked_up_in_the_path),
        cmocka_unit_test(a_child_starts_with_a_clean_slate),
        cmocka_unit_test(the_environment_is_inherited_by_default),
        cmocka_unit_test(standard_error_that_is_close_on_exec_is_inherited),
        cmocka_unit_test(standard_error_that_is_closed_is_the_null_device),
        cmocka_unit_test(an_empty_command_is_refused),
        cmocka_unit_test(the_exit_status_is_told),
        cmocka_unit_test(the_signal_that_ended_it_is_told),
        cmocka_unit_test(nothing_is_started_once_the_runtime_stops),
        cmocka_unit_test(an_exit_is_seen_though_a_grandchild_holds_the_pipe),
        cmocka_unit_test(a_child_that_closes_its_output_is_lost_and_let_go),
        cmocka_unit_test(what_it_said_before_it_ended_waits_to_be_wanted),
        cmocka_unit_test(everything_is_written_before_the_input_is_closed),
        cmocka_unit_test(one_that_ignores_the_end_of_input_is_terminated_in_time),
        cmocka_unit_test(one_that_ignores_sigterm_is_killed_in_time),
        cmocka_unit_test(freeing_the_runtime_ends_a_deaf_child_in_bounded_time),
        cmocka_unit_test(a_restart_brings_a_new_child),
        cmocka_unit_test(a_restart_waits_for_the_last_child_to_go),
        cmocka_unit_test(a_lost_one_waits_to_be_reopened_or_closed),
        cmocka_unit_test(a_program_that_cannot_be_started_can_be_tried_again),
        cmocka_unit_test(without_restart_it_cannot_be_reopened),
        cmocka_unit_test(standard_error_comes_line_by_line),
        cmocka_unit_test(user_is_freed_though_it_was_never_attached),
        cmocka_unit_test(user_is_freed_with_the_runtime),
    };
    if (argc > 1)
        return run_child(argc, argv);
    return run_transport_suite(&spawn_kind) +
           cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
