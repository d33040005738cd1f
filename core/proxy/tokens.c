#include "tokens.h"

#include "proxy.h"
#include "sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct token {
    struct token *next;
    char *principal;
    unsigned char digest[SHA256_SIZE];
} token;

struct tokens {
    token *first; /* NULL = nobody is let in */
};

void tokens_free(tokens *all)
{
    while (all && all->first) {
        token *next = all->first->next;
        free(all->first->principal);
        free(all->first);
        all->first = next;
    }
    free(all);
}

bool tokens_is_empty(const tokens *all)
{
    return !all->first;
}

/* ---- the file ---- */

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Reads the digits of a digest. Returns false when the text is something else. */
static bool read_digest(const char *words, unsigned char digest[SHA256_SIZE])
{
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        int high = digit_of(words[2 * i]);
        int low = high < 0 ? -1 : digit_of(words[2 * i + 1]);
        if (low < 0)
            return false;
        digest[i] = (unsigned char)(high << 4 | low);
    }
    return !words[(size_t)2 * SHA256_SIZE];
}

/* Takes a line, and adds its token to the others. Returns false when the line is
 * wrong. */
static bool take_line(tokens *all, char *line)
{
    char *rest = NULL;
    char *principal = strtok_r(line, " \t\r\n", &rest);
    char *digits = principal ? strtok_r(NULL, " \t\r\n", &rest) : NULL;
    if (!principal || *principal == '#')
        return true;
    token *t = calloc(1, sizeof *t);
    if (!t)
        return false;
    t->next = all->first;
    all->first = t;
    t->principal = copy_string(principal);
    return t->principal && digits && read_digest(digits, t->digest) &&
           !strtok_r(NULL, " \t\r\n", &rest);
}

static bool refuse(const char *path, const char *why)
{
    log_event(SEGUE_LOG_ERROR, "tokens_invalid", NULL, "%s %s", path, why);
    return false;
}

static bool refuse_system(const char *path, const char *what, int number)
{
    char why[200];
    snprintf(why, sizeof why, "cannot be %s: %s", what, strerror(number));
    return refuse(path, why);
}

static bool refuse_size(const char *path)
{
    char why[80];
    snprintf(why, sizeof why, "is larger than %d bytes", TOKENS_FILE_MAX);
    return refuse(path, why);
}

/* Reads the rest of the file, at most the limit and one byte more. Returns the number of
 * bytes; -1 = the system reports an error (errno). */
static ssize_t read_bytes(int fd, char *to)
{
    size_t len = 0;
    ssize_t more = 1;
    while (len <= TOKENS_FILE_MAX && more) {
        more = read(fd, to + len, TOKENS_FILE_MAX + 1 - len);
        if (more < 0 && errno != EINTR)
            return -1;
        len += more > 0 ? (size_t)more : 0;
    }
    return (ssize_t)len;
}

/* Reads an open file into `to`, which has room for the limit and one byte more, and ends
 * the text. Returns false when the file cannot be used. */
static bool read_text(const char *path, int fd, char *to)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return refuse_system(path, "read", errno);
    if (!S_ISREG(about.st_mode))
        return refuse(path, "is not a regular file");
    ssize_t len = read_bytes(fd, to);
    if (len < 0)
        return refuse_system(path, "read", errno);
    if (len > TOKENS_FILE_MAX)
        return refuse_size(path);
    to[len] = 0;
    return strlen(to) == (size_t)len || refuse(path, "is not a text");
}

static bool take_lines(const char *path, tokens *all, char *rest)
{
    for (int number = 1; rest; number++) {
        char why[100];
        if (take_line(all, strsep(&rest, "\n")))
            continue;
        snprintf(why, sizeof why,
                 "has a line %d that is not a principal and the SHA-256 of a token",
                 number);
        return refuse(path, why);
    }
    return true;
}

tokens *tokens_read(const char *path)
{
    tokens *all = calloc(1, sizeof *all);
    char *room = malloc(TOKENS_FILE_MAX + 1);
    /* a FIFO without a writer must not let the program wait */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool ok = fd < 0          ? refuse_system(path, "opened", errno)
              : !all || !room ? refuse(path, "cannot be read: out of memory")
                              : read_text(path, fd, room) && take_lines(path, all, room);
    if (fd >= 0)
        close(fd);
    free(room);
    if (ok)
        return all;
    tokens_free(all);
    return NULL;
}

/* ---- the check ---- */

/* Compares all bytes in any case, so that the time tells nothing about the digest. */
static bool is_same(const unsigned char *a, const unsigned char *b)
{
    unsigned char difference = 0;
    for (size_t i = 0; i < SHA256_SIZE; i++)
        difference |= a[i] ^ b[i];
    return !difference;
}

const char *tokens_principal(const tokens *all, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    unsigned char digest[SHA256_SIZE];
    if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
        return NULL;
    authorization += strlen(scheme);
    authorization += strspn(authorization, " ");
    sha256(authorization, strlen(authorization), digest);
    const char *principal = NULL;
    for (const token *t = all->first; t; t = t->next)
        if (is_same(t->digest, digest) && !principal)
            principal = t->principal;
    return principal;
}
