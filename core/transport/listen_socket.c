/* Opens listening sockets.
 *
 * A Unix socket leaves a file behind when its server dies. A try to connect shows whether
 * a server still listens: if the connection is refused, the file is replaced. Without a
 * lock, two servers that start at once could both find the same dead file, or one server
 * could remove the other server's new file before the other listens. Therefore everything
 * is done under a lock on the directory, which needs no lock file. The mode is set before
 * the file appears, so that the file is never open to all users, and again afterwards,
 * because the process's umask removes bits. At close the file is removed only if its
 * inode is still the same; the inode is not reused while the socket is open.
 *
 * Inherited sockets follow sd_listen_fds(3): the descriptors from 3 on, only for the
 * process that LISTEN_PID names. */
#include "transport/listen_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>

#define DEFAULT_MODE 0600
#define FIRST_INHERITED 3
#define LOCK_TRIES 100
#define LOCK_PAUSE_NS 10000000 /* the pause between two tries to lock: 10 ms */

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
} any_address;

static segue_status refuse(char why[SGI_WHY_SIZE], const char *what, const char *name)
{
    snprintf(why, SGI_WHY_SIZE, "%s: %s", name ? name : "listening", what);
    return SEGUE_E_INVALID;
}

static segue_status failed(char why[SGI_WHY_SIZE], const char *what, int fault)
{
    sgi_transport_explain(why, what, fault);
    return fault == EADDRINUSE ? SEGUE_E_EXISTS : SEGUE_E_IO;
}

static int make_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int backlog_of(const sgi_listen_options *options)
{
    return options->backlog > 0 ? options->backlog : SOMAXCONN;
}

static void set_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof value);
}

/* ---- TCP sockets ---- */

/* Parses an IP address. Returns the length of the socket address, or 0 when the text is
 * not an IP address. */
static socklen_t parse_address(const char *text, int32_t port, any_address *address)
{
    *address = (any_address){0};
    if (strcmp(text, "localhost") == 0)
        text = "127.0.0.1";
    if (inet_pton(AF_INET, text, &address->in.sin_addr) == 1) {
        address->in.sin_family = AF_INET;
        address->in.sin_port = htons((uint16_t)port);
        return sizeof address->in;
    }
    if (inet_pton(AF_INET6, text, &address->in6.sin6_addr) == 1) {
        address->in6.sin6_family = AF_INET6;
        address->in6.sin6_port = htons((uint16_t)port);
        return sizeof address->in6;
    }
    return 0;
}

static int32_t port_of(int fd)
{
    any_address address = {0};
    socklen_t len = sizeof address;
    if (getsockname(fd, &address.any, &len) != 0)
        return 0;
    if (address.any.sa_family == AF_INET)
        return ntohs(address.in.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.in6.sin6_port) : 0;
}

/* Writes an error that names the address and the port, because the most frequent error is
 * a port that is in use. Returns the status of the error. */
static segue_status failed_at(const sgi_listen_options *options, char why[SGI_WHY_SIZE],
                              int fault)
{
    char place[SGI_WHY_SIZE / 2];
    bool is_v6 = strchr(options->address, ':');
    snprintf(place, sizeof place, is_v6 ? "[%s]:%d" : "%s:%d", options->address,
             (int)options->port);
    return failed(why, place, fault);
}

static segue_status open_tcp(sgi_listen_socket *s, const sgi_listen_options *options,
                             char why[SGI_WHY_SIZE])
{
    any_address address;
    if (!options->address)
        return refuse(why, "the address to listen on is missing", NULL);
    if (options->port < 0 || options->port > UINT16_MAX)
        return refuse(why, "the port has to be 0 (any free port) to 65535",
                      options->address);
    socklen_t len = parse_address(options->address, options->port, &address);
    if (!len)
        return refuse(why, "this is not an IP address (host names are not resolved)",
                      options->address);
    s->fd = make_socket(address.any.sa_family);
    if (s->fd < 0)
        return failed(why, "the socket cannot be created", errno);
    set_option(s->fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (options->reuse_port)
        set_option(s->fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (address.any.sa_family == AF_INET6)
        set_option(s->fd, IPPROTO_IPV6, IPV6_V6ONLY,
                   !IN6_IS_ADDR_UNSPECIFIED(&address.in6.sin6_addr));
    if (bind(s->fd, &address.any, len) != 0 || listen(s->fd, backlog_of(options)) != 0)
        return failed_at(options, why, errno);
    s->port = port_of(s->fd);
    return SEGUE_OK;
}

/* ---- Unix sockets ---- */

/* Checks whether a server listens on the path. Returns SEGUE_OK when no server listens,
 * so that the file may be removed. */
static segue_status check_stale(const any_address *address, char why[SGI_WHY_SIZE])
{
    const char *path = address->un.sun_path;
    struct stat file;
    if (lstat(path, &file) != 0)
        return errno == ENOENT ? SEGUE_OK : failed(why, path, errno);
    if (!S_ISSOCK(file.st_mode))
        return refuse(why, "the path exists and is not a socket", path);
    int probe = make_socket(AF_UNIX);
    if (probe < 0)
        return failed(why, "the socket cannot be created", errno);
    int fault = connect(probe, &address->any, sizeof address->un) == 0 ? 0 : errno;
    close(probe);
    if (fault == ECONNREFUSED || fault == ENOENT)
        return SEGUE_OK;
    if (fault == 0 || fault == EAGAIN) {
        refuse(why, "another server listens on this path", path);
        return SEGUE_E_EXISTS;
    }
    return failed(why, path, fault);
}

/* Locks the directory of the path. Returns a descriptor that holds the lock, or -1 when
 * the directory cannot be locked, for example because it is not readable. The socket is
 * then opened without the lock. */
static int lock_directory(const char *path)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path] = ".";
    const char *slash = strrchr(path, '/');
    const struct timespec pause = {0, LOCK_PAUSE_NS};
    if (slash)
        snprintf(directory, sizeof directory, "%.*s", (int)(slash - path) + 1, path);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        nanosleep(&pause, NULL);
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static segue_status bind_path(int fd, const any_address *address, char why[SGI_WHY_SIZE])
{
    if (bind(fd, &address->any, sizeof address->un) == 0)
        return SEGUE_OK;
    if (errno != EADDRINUSE)
        return failed(why, address->un.sun_path, errno);
    segue_status status = check_stale(address, why);
    if (status != SEGUE_OK)
        return status;
    unlink(address->un.sun_path);
    return bind(fd, &address->any, sizeof address->un) == 0
               ? SEGUE_OK
               : failed(why, address->un.sun_path, errno);
}

/* Stores path and inode of the socket's file, so that the file can be removed at
 * close. */
static segue_status keep_path(sgi_listen_socket *s, const char *path,
                              char why[SGI_WHY_SIZE])
{
    struct stat file;
    if (lstat(path, &file) != 0)
        return failed(why, path, errno);
    s->device = file.st_dev;
    s->inode = file.st_ino;
    s->path = sgi_text_dup(s->mem, sgi_str_of(path));
    if (s->path)
        return SEGUE_OK;
    unlink(path);
    snprintf(why, SGI_WHY_SIZE, "out of memory");
    return SEGUE_E_NOMEM;
}

static segue_status open_unix(sgi_listen_socket *s, const sgi_listen_options *options,
                              char why[SGI_WHY_SIZE])
{
    mode_t mode = options->mode ? (mode_t)options->mode : DEFAULT_MODE;
    any_address address = {.un = {.sun_family = AF_UNIX}};
    const char *path = options->path;
    if (!path || !*path)
        return refuse(why, "the path of the Unix socket is missing", NULL);
    if (strlen(path) >= sizeof address.un.sun_path)
        return refuse(why, "the path is too long for a Unix socket", path);
    memcpy(address.un.sun_path, path, strlen(path));
    s->fd = make_socket(AF_UNIX);
    if (s->fd < 0 || fchmod(s->fd, mode) != 0)
        return failed(why, "the socket cannot be created", errno);
    int lock = lock_directory(path);
    segue_status status = bind_path(s->fd, &address, why);
    if (status == SEGUE_OK)
        status = keep_path(s, path, why);
    if (status == SEGUE_OK &&
        (listen(s->fd, backlog_of(options)) != 0 || chmod(path, mode) != 0))
        status = failed(why, path, errno);
    if (lock >= 0)
        close(lock);
    return status;
}

/* ---- inherited sockets ---- */

static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return -1;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end ? -1 : value;
}

/* Returns the index of a name in the environment variable LISTEN_FDNAMES, or -1 when the
 * variable does not have the name. */
static int64_t index_of(const char *wanted)
{
    const char *at = getenv("LISTEN_FDNAMES");
    for (int64_t index = 0; at; index++) {
        size_t len = strcspn(at, ":");
        if (len == strlen(wanted) && memcmp(at, wanted, len) == 0)
            return index;
        at = at[len] ? at + len + 1 : NULL;
    }
    return -1;
}

static bool is_listening(int fd)
{
    int listens = 0, type = 0;
    socklen_t len = sizeof listens;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

static segue_status open_inherited(sgi_listen_socket *s,
                                   const sgi_listen_options *options,
                                   char why[SGI_WHY_SIZE])
{
    int64_t count = number_of("LISTEN_FDS");
    int64_t index = options->name ? index_of(options->name) : options->index;
    if (number_of("LISTEN_PID") != getpid() || index < 0 || index >= count ||
        count > INT16_MAX) {
        refuse(why, "the process has inherited no such socket (LISTEN_FDS)",
               options->name);
        return SEGUE_E_NOT_FOUND;
    }
    int fd = FIRST_INHERITED + (int)index;
    if (!is_listening(fd))
        return refuse(why, "the inherited descriptor is not a listening socket",
                      options->name);
    s->fd = fd;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    s->port = port_of(fd);
    return SEGUE_OK;
}

/* ---- any kind of socket ---- */

segue_status sgi_listen_open(sgi_listen_socket *s, const sgi_mem *mem,
                             const sgi_listen_options *options, char why[SGI_WHY_SIZE])
{
    segue_status status;
    *s = (sgi_listen_socket){.fd = -1, .mem = mem};
    if (options->kind == SGI_LISTEN_TCP)
        status = open_tcp(s, options, why);
    else if (options->kind == SGI_LISTEN_UNIX)
        status = open_unix(s, options, why);
    else
        status = open_inherited(s, options, why);
    if (status != SEGUE_OK)
        sgi_listen_close(s);
    return status;
}

void sgi_listen_close(sgi_listen_socket *s)
{
    struct stat file;
    if (s->path && lstat(s->path, &file) == 0 && file.st_dev == s->device &&
        file.st_ino == s->inode)
        unlink(s->path);
    sgi_text_free(s->mem, s->path);
    s->path = NULL;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
