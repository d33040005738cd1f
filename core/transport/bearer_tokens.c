#include "transport/bearer_tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/thresholds.h"

#define FILE_MAX SGI_THRESHOLD(tokens_file_bytes)

typedef struct entry {
    size_t name; /* where the name of the principal begins in the text */
    uint8_t digest[SGI_DIGEST_SIZE];
} entry;

void sgi_bearer_tokens_init(sgi_bearer_tokens *tokens, const sgi_mem *mem)
{
    *tokens = (sgi_bearer_tokens){.count = 0};
    sgi_buf_init(&tokens->text, mem);
    sgi_buf_init(&tokens->list, mem);
}

void sgi_bearer_tokens_free(sgi_bearer_tokens *tokens)
{
    sgi_buf_free(&tokens->text);
    sgi_buf_free(&tokens->list);
    tokens->count = 0;
}

/* ---- reading the file ---- */

static segue_status refuse(segue_status status, const char *path, const char *what,
                           char why[SGI_WHY_SIZE])
{
    snprintf(why, SGI_WHY_SIZE, "%s %s", path, what);
    return status;
}

static segue_status refuse_system(const char *path, const char *what,
                                  char why[SGI_WHY_SIZE])
{
    char text[100];
    snprintf(why, SGI_WHY_SIZE, "%s cannot be %s: %s", path, what,
             sgi_transport_describe(errno, text, sizeof text));
    return SEGUE_E_IO;
}

/* Reads the rest of the file, until it is longer than the limit. */
static segue_status read_bytes(int fd, const char *path, sgi_buf *to,
                               char why[SGI_WHY_SIZE])
{
    ssize_t more = 1;
    while (to->len <= FILE_MAX && more) {
        if (!sgi_buf_reserve(to, BUFSIZ))
            return SEGUE_E_NOMEM;
        more = read(fd, to->p + to->len, BUFSIZ);
        if (more < 0 && errno != EINTR)
            return refuse_system(path, "read", why);
        to->len += more > 0 ? (size_t)more : 0;
    }
    return SEGUE_OK;
}

static segue_status read_text(int fd, const char *path, sgi_buf *to,
                              char why[SGI_WHY_SIZE])
{
    char what[80];
    struct stat about;
    if (fstat(fd, &about) != 0)
        return refuse_system(path, "read", why);
    if (!S_ISREG(about.st_mode))
        return refuse(SEGUE_E_INVALID, path, "is not a regular file", why);
    segue_status status = read_bytes(fd, path, to, why);
    if (status != SEGUE_OK)
        return status;
    snprintf(what, sizeof what, "is larger than %zu bytes", FILE_MAX);
    if (to->len > FILE_MAX)
        return refuse(SEGUE_E_INVALID, path, what, why);
    if ((to->len && memchr(to->p, 0, to->len)) || !sgi_utf8_valid(sgi_buf_str(to), NULL))
        return refuse(SEGUE_E_INVALID, path, "is not a text", why);
    return sgi_buf_terminate(to) ? SEGUE_OK : SEGUE_E_NOMEM;
}

/* ---- reading the lines ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Returns the next word of a line, and ends it with a NUL. Returns an empty text at the
 * end of the line. */
static char *next_word(char **at)
{
    while (is_blank(**at))
        ++*at;
    char *word = *at;
    while (**at && !is_blank(**at))
        ++*at;
    if (**at)
        *(*at)++ = 0;
    return word;
}

/* Returns 16 for a character that is no hexadecimal digit. */
static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    char small = (char)(c | 0x20);
    return small >= 'a' && small <= 'f' ? (unsigned)(small - 'a') + 10 : 16;
}

static bool read_digest(const char *word, uint8_t digest[SGI_DIGEST_SIZE])
{
    if (strlen(word) != (size_t)2 * SGI_DIGEST_SIZE)
        return false;
    for (size_t i = 0; i < SGI_DIGEST_SIZE; i++) {
        unsigned high = digit_of(word[2 * i]), low = digit_of(word[2 * i + 1]);
        if (high > 15 || low > 15)
            return false;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static segue_status take_line(sgi_bearer_tokens *tokens, char *line)
{
    entry found;
    char *name = next_word(&line);
    if (!*name || *name == '#')
        return SEGUE_OK;
    found.name = (size_t)(name - tokens->text.p);
    if (!read_digest(next_word(&line), found.digest) || *next_word(&line))
        return SEGUE_E_INVALID;
    sgi_buf_add(&tokens->list, (const char *)&found, sizeof found);
    tokens->count++;
    return tokens->list.failed ? SEGUE_E_NOMEM : SEGUE_OK;
}

static segue_status take_lines(sgi_bearer_tokens *tokens, const char *path,
                               char why[SGI_WHY_SIZE])
{
    char what[100];
    char *line = tokens->text.p;
    for (int number = 1; line; number++) {
        char *end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        segue_status status = take_line(tokens, line);
        snprintf(what, sizeof what,
                 "has a line %d that is not a principal and the SHA-256 of a token",
                 number);
        if (status == SEGUE_E_INVALID)
            return refuse(status, path, what, why);
        if (status != SEGUE_OK)
            return status;
        line = end;
    }
    return SEGUE_OK;
}

segue_status sgi_bearer_tokens_read(sgi_bearer_tokens *tokens, const char *path,
                                    char why[SGI_WHY_SIZE])
{
    /* a FIFO without a writer must not let the program wait */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return refuse_system(path, "opened", why);
    segue_status status = read_text(fd, path, &tokens->text, why);
    close(fd);
    if (status == SEGUE_OK)
        status = take_lines(tokens, path, why);
    return status == SEGUE_E_NOMEM
               ? refuse(status, path, "cannot be read: out of memory", why)
               : status;
}

segue_status sgi_bearer_tokens_open(sgi_bearer_tokens *tokens, const char *path,
                                    char why[SGI_WHY_SIZE])
{
    segue_status status = sgi_bearer_tokens_read(tokens, path, why);
    return status == SEGUE_OK && !tokens->count
               ? refuse(SEGUE_E_INVALID, path, "has no token", why)
               : status;
}

/* ---- the check ---- */

const char *sgi_bearer_tokens_find(const sgi_bearer_tokens *tokens,
                                   const uint8_t digest[SGI_DIGEST_SIZE])
{
    const char *principal = NULL;
    for (size_t i = 0; i < tokens->count; i++) {
        entry one;
        memcpy(&one, tokens->list.p + i * sizeof one, sizeof one);
        if (sgi_crypto_equal(one.digest, digest, sizeof one.digest) && !principal)
            principal = tokens->text.p + one.name;
    }
    return principal;
}
