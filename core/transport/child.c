/* Starts a child process with posix_spawn, which runs none of this library's code between
 * fork and exec and returns the error of exec. The child starts with default signal
 * handlers, no blocked signals, and only the three standard descriptors. This library's
 * descriptors are close-on-exec. Other open descriptors are closed where the C library
 * can close them: if a child inherits the write end of a pipe, the reader of the pipe
 * waits forever.
 *
 * The child is watched and signalled through a pidfd, which never refers to another
 * process. */
#include "transport/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/standard_fds.h"

/* The size in bytes of the pipe for the child's output. A pipe of the default size (64
 * KiB) fills so fast when the child streams that writer and reader must take turns. */
#define OUTPUT_PIPE_BYTES (256 * 1024)

extern char **environ;

/* A program can run with an older C library than that of its build, or with a newer one.
 * These functions are used when the C library that is there has them. */
#ifdef __GLIBC__
extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *files,
                                                const char *path) __attribute__((weak));
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *files,
                                                    int from) __attribute__((weak));
#endif

/* ---- command ---- */

static size_t measure(const char *const *texts, size_t *count)
{
    size_t size = 0;
    for (*count = 0; texts && texts[*count]; ++*count)
        size += strlen(texts[*count]) + 1;
    return size;
}

static char *put_text(char **room, const char *text)
{
    char *copy = *room;
    size_t size = strlen(text) + 1;
    memcpy(copy, text, size);
    *room += size;
    return copy;
}

static void put_texts(char **to, const char *const *texts, size_t count, char **room)
{
    for (size_t i = 0; i < count; i++)
        to[i] = put_text(room, texts[i]);
    to[count] = NULL;
}

sgi_child_command *sgi_child_command_copy(const sgi_mem *mem,
                                          const segue_spawn_options *options)
{
    size_t args, vars;
    size_t text = measure(options->argv, &args) + measure(options->env, &vars);
    if (options->working_dir)
        text += strlen(options->working_dir) + 1;
    size_t size =
        sizeof(sgi_child_command) + (args + 1 + vars + 1) * sizeof(char *) + text;
    sgi_child_command *command = sgi_zalloc(mem, size);
    if (!command)
        return NULL;
    command->size = size;
    command->argv = (char **)(void *)(command + 1);
    char **env = command->argv + args + 1;
    char *room = (char *)(env + vars + 1);
    put_texts(command->argv, options->argv, args, &room);
    if (options->env) {
        command->env = env;
        put_texts(env, options->env, vars, &room);
    }
    if (options->working_dir)
        command->dir = put_text(&room, options->working_dir);
    return command;
}

void sgi_child_command_free(const sgi_mem *mem, sgi_child_command *command)
{
    if (command)
        sgi_free(mem, command, command->size);
}

/* ---- starting a child ---- */

/* The ends of the pipes that the child uses; -1 = the child has no such pipe. */
typedef struct far_ends {
    int in;
    int out;
    int err;
} far_ends;

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Moves a descriptor to a number above 2, because the numbers 0, 1 and 2 become the
 * standard streams of the child. Returns the new number. */
static int move_up(int fd)
{
    if (fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int fault = errno;
    close(fd);
    errno = fault;
    return moved;
}

static int make_pipe(int *read_end, int *write_end)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return errno;
    *read_end = move_up(fds[0]);
    *write_end = *read_end < 0 ? fds[1] : move_up(fds[1]);
    return *read_end < 0 || *write_end < 0 ? errno : 0;
}

static int make_pipes(sgi_child *child, far_ends *far, bool with_err)
{
    int fault = make_pipe(&far->in, &child->in);
    if (!fault)
        fault = make_pipe(&child->out, &far->out);
    /* a failure is ignored, because a pipe of the default size is only slower */
    if (!fault)
        (void)fcntl(child->out, F_SETPIPE_SZ, OUTPUT_PIPE_BYTES);
    if (!fault && with_err) {
        fault = make_pipe(&child->err, &far->err);
        if (!fault && fcntl(child->err, F_SETFL, O_NONBLOCK))
            fault = errno;
    }
    return fault;
}

/* Plans which descriptor becomes the child's standard error: the pipe of on_stderr, or
 * else the program's own standard error. dup2 onto the same number clears the flag
 * close-on-exec, which Node sets on standard error. If the program's standard error is
 * closed, the child gets /dev/null; otherwise the first file that the child opens would
 * get the number 2. */
static int plan_errors(posix_spawn_file_actions_t *files, const far_ends *far)
{
    if (far->err >= 0)
        return posix_spawn_file_actions_adddup2(files, far->err, STDERR_FILENO);
    if (sgi_fd_is_open(STDERR_FILENO))
        return posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDERR_FILENO);
    return posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_RDWR, 0);
}

static int plan_directory(posix_spawn_file_actions_t *files, const char *path)
{
#ifdef __GLIBC__
    if (!posix_spawn_file_actions_addchdir_np) /* from 2.29 on */
        return ENOTSUP;
#endif
    return posix_spawn_file_actions_addchdir_np(files, path);
}

/* Plans that the child has no descriptors but its standard streams. Where the C library
 * cannot close all of them, those without close-on-exec are closed one by one. */
static int plan_closing(posix_spawn_file_actions_t *files)
{
#ifdef __GLIBC__
    if (posix_spawn_file_actions_addclosefrom_np) /* from 2.34 on */
        return posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
#endif
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *one;
    int fault = 0;
    while (!fault && all && (one = readdir(all))) {
        int fd = (int)strtol(one->d_name, NULL, 10); /* 0 for "." and ".." */
        int flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFD) : -1;
        if (flags >= 0 && !(flags & FD_CLOEXEC))
            fault = posix_spawn_file_actions_addclose(files, fd);
    }
    if (all)
        closedir(all);
    return fault;
}

static int plan_files(posix_spawn_file_actions_t *files, const sgi_child_command *command,
                      const far_ends *far)
{
    int fault = posix_spawn_file_actions_adddup2(files, far->in, STDIN_FILENO);
    if (!fault)
        fault = posix_spawn_file_actions_adddup2(files, far->out, STDOUT_FILENO);
    if (!fault)
        fault = plan_errors(files, far);
    if (!fault && command->dir)
        fault = plan_directory(files, command->dir);
    return fault ? fault : plan_closing(files);
}

static int plan_signals(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int fault = posix_spawnattr_setsigdefault(attributes, &all);
    if (!fault)
        fault = posix_spawnattr_setsigmask(attributes, &none);
    if (!fault)
        fault = posix_spawnattr_setflags(attributes,
                                         POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    return fault;
}

static int spawn_it(sgi_child *child, const sgi_child_command *command,
                    const far_ends *far)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int fault = posix_spawn_file_actions_init(&files);
    if (fault)
        return fault;
    fault = posix_spawnattr_init(&attributes);
    if (!fault) {
        fault = plan_files(&files, command, far);
        if (!fault)
            fault = plan_signals(&attributes);
        if (!fault)
            fault = posix_spawnp(&child->pid, command->argv[0], &files, &attributes,
                                 command->argv, command->env ? command->env : environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return fault;
}

/* Opens the pidfd of the child. Returns 0 or an errno. On failure the function kills the
 * child, because a child without pidfd cannot be watched. */
static int open_pidfd(sgi_child *child)
{
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->pidfd >= 0) {
        fcntl(child->pidfd, F_SETFD, FD_CLOEXEC);
        return 0;
    }
    int fault = errno;
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return fault;
}

int sgi_child_start(sgi_child *child, const sgi_child_command *command, bool with_err)
{
    far_ends far = {-1, -1, -1};
    *child = (sgi_child){0, -1, -1, -1, -1};
    int fault = make_pipes(child, &far, with_err);
    if (!fault)
        fault = spawn_it(child, command, &far);
    if (!fault)
        fault = open_pidfd(child);
    close_one(&far.in);
    close_one(&far.out);
    close_one(&far.err);
    if (fault) {
        child->pid = 0;
        sgi_child_close(child);
    }
    return fault;
}

/* ---- ending a child ---- */

void sgi_child_signal(const sgi_child *child, int signal)
{
    if (child->pid)
        syscall(SYS_pidfd_send_signal, child->pidfd, signal, NULL, 0);
}

bool sgi_child_reap(sgi_child *child, bool wait, sgi_child_exit *how)
{
    siginfo_t info = {0};
    int result;
    do {
        result =
            waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | (wait ? 0 : WNOHANG));
    } while (result < 0 && errno == EINTR);
    if (result == 0 && info.si_pid == 0)
        return false;
    child->pid = 0;
    *how = (sgi_child_exit){.known = result == 0,
                            .killed = info.si_code != CLD_EXITED,
                            .value = info.si_status};
    return true;
}

void sgi_child_close(sgi_child *child)
{
    close_one(&child->in);
    close_one(&child->out);
    close_one(&child->err);
    close_one(&child->pidfd);
}
