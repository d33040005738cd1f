/* base: what all other folders use: memory, buffers, views of bytes, maps and timers.
 * Time, random numbers and digests are injected interfaces. The folder uses only libc;
 * crypto.c also uses OpenSSL. The folder does not know the protocol. Its functions run on
 * the thread of the caller and take no locks. */
#ifndef SGI_BASE_H
#define SGI_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <segue/segue.h>
#include <segue/segue_auth.h>
#include <segue/segue_ext.h>
#include <segue/easy.h>

/* ---- memory ---- */

typedef segue_allocator sgi_mem;

extern const sgi_mem sgi_mem_libc;

void *sgi_alloc(const sgi_mem *mem, size_t size);
void *sgi_zalloc(const sgi_mem *mem, size_t size);
void *sgi_realloc(const sgi_mem *mem, void *ptr, size_t old_size, size_t new_size);
/* Frees the memory. size: the size with which the memory was allocated. ptr may be
 * NULL. */
void sgi_free(const sgi_mem *mem, void *ptr, size_t size);

/* ---- work ---- */

/* Debug builds count the work on bytes from a peer: bytes that are read, compared,
 * hashed, copied and allocated. Tests compare this count with the size of the input. */
#ifdef SGI_COUNT_WORK
extern uint64_t sgi_work;
#define SGI_WORK(amount)                                                                 \
    __atomic_fetch_add(&sgi_work, (uint64_t)(amount) + 1, __ATOMIC_RELAXED)
#else
#define SGI_WORK(amount) ((void)0)
#endif

/* ---- string view ---- */

/* A view of bytes that another object owns. p can be NULL only when n is 0. */
typedef struct sgi_str {
    const char *p;
    size_t n;
} sgi_str;

#define SGI_STR(literal) ((sgi_str){(literal), sizeof(literal) - 1})

/* Like SGI_STR, for the initialiser of a static table. */
#define SGI_STR_INIT(literal)                                                            \
    {                                                                                    \
        (literal), sizeof(literal) - 1                                                   \
    }

static inline sgi_str sgi_str_of(const char *text)
{
    return (sgi_str){text, text ? strlen(text) : 0};
}

static inline bool sgi_str_eq(sgi_str a, sgi_str b)
{
    SGI_WORK(a.n == b.n ? a.n : 0);
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* True when the text begins with the prefix. Each text begins with an empty prefix. */
static inline bool sgi_str_begins(sgi_str text, sgi_str prefix)
{
    SGI_WORK(prefix.n);
    return text.n >= prefix.n &&
           (prefix.n == 0 || memcmp(text.p, prefix.p, prefix.n) == 0);
}

/* Removes a prefix from the text. Returns false, and changes nothing, when the text does
 * not begin with the prefix. */
static inline bool sgi_str_skip(sgi_str *text, sgi_str prefix)
{
    if (!sgi_str_begins(*text, prefix))
        return false;
    if (prefix.n) {
        text->p += prefix.n;
        text->n -= prefix.n;
    }
    return true;
}

/* Returns a NUL-terminated copy, which the caller frees with sgi_text_free. Returns
 * NULL when out of memory. */
char *sgi_text_dup(const sgi_mem *mem, sgi_str text);
void sgi_text_free(const sgi_mem *mem, char *text);
/* Returns how many bytes of a UTF-8 text fit into `most` bytes without cutting a
 * character. */
size_t sgi_text_fitting_bytes(sgi_str text, size_t most);
/* Copies the text without its incomplete UTF-8 characters and returns the number of bytes
 * of the copy. `to` may be the text itself. When `to` is NULL, the function only counts
 * the bytes. */
size_t sgi_text_drop_broken_chars(char *to, sgi_str text);
/* Formats like vsnprintf, but never cuts a UTF-8 character at the end of `out` or where a
 * precision cuts a string. */
void sgi_text_vformat(char *out, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
void sgi_text_format(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- from a pointer to a member to the object that contains the member ---- */

#define SGI_OWNER(ptr, type, member)                                                     \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Like TAILQ_FOREACH, but the loop body may remove the current element. */
#define SGI_TAILQ_EACH(var, head, field, next)                                           \
    for ((var) = TAILQ_FIRST(head); (var) && ((next) = TAILQ_NEXT(var, field), 1);       \
         (var) = (next))

/* ---- time and random numbers, injected ---- */

typedef struct sgi_env {
    const sgi_mem *mem;
    segue_hooks *hooks; /* the runtime's clocks and random numbers; never NULL */
} sgi_env;

/* These functions add, subtract and multiply times and durations without overflow. A
 * peer, a store or an option may give any number. A result beyond int64_t becomes
 * INT64_MIN or INT64_MAX. */
static inline int64_t sgi_time_add(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t sgi_time_sub(int64_t a, int64_t b)
{
    int64_t left;
    return !__builtin_sub_overflow(a, b, &left) ? left : b < 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t sgi_time_mul(int64_t a, int64_t b)
{
    int64_t product;
    bool negative = (a < 0) != (b < 0);
    return !__builtin_mul_overflow(a, b, &product) ? product
           : negative                              ? INT64_MIN
                                                   : INT64_MAX;
}

/* returns the time of the monotonic clock in ms */
int64_t sgi_now(const sgi_env *env);
/* returns the time of the wall clock in ms since 1970 */
int64_t sgi_wall_now(const sgi_env *env);
bool sgi_random(const sgi_env *env, void *bytes, size_t len);

#endif
