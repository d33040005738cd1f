/* base: what every room stands on. Memory, buffers, views, maps, timers, and time, chance
 * and digests as injected interfaces. May use libc only (crypto.c alone uses OpenSSL);
 * knows no protocol word. Runs on whichever thread calls it; nothing here locks. */
#ifndef SGI_BASE_H
#define SGI_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <segue/segue.h>
#include <segue/segue_ext.h>

/* ---- memory ---- */

typedef segue_allocator sgi_mem;

extern const sgi_mem sgi_mem_libc;

void *sgi_alloc(const sgi_mem *mem, size_t size);
void *sgi_zalloc(const sgi_mem *mem, size_t size);
void *sgi_resize(const sgi_mem *mem, void *ptr, size_t old_size, size_t new_size);
/* size must be what was asked for. NULL is ignored. */
void sgi_release(const sgi_mem *mem, void *ptr, size_t size);

/* ---- work ---- */

/* Debug builds count what is done to bytes of a peer: bytes that are walked, compared,
 * hashed, copied and allocated. Tests hold it against the size of the input. */
#ifdef SGI_COUNT_WORK
extern uint64_t sgi_work;
#define SGI_WORK(amount)                                                                 \
    __atomic_fetch_add(&sgi_work, (uint64_t)(amount) + 1, __ATOMIC_RELAXED)
#else
#define SGI_WORK(amount) ((void)0)
#endif

/* ---- string view ---- */

/* Bytes somebody else owns. p may be NULL only when n is 0. */
typedef struct sgi_str {
    const char *p;
    size_t n;
} sgi_str;

#define SGI_STR(literal) ((sgi_str){(literal), sizeof(literal) - 1})

/* The same for initialisers of static tables. */
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

/* A NUL-terminated copy; release with sgi_text_free. NULL when out of memory. */
char *sgi_text_dup(const sgi_mem *mem, sgi_str text);
void sgi_text_free(const sgi_mem *mem, char *text);
/* Number of bytes of a UTF-8 text that fit into `most` bytes, cut between characters. */
size_t sgi_text_fit(sgi_str text, size_t most);
/* Copies the text without the characters that were cut in the middle; returns how many
 * bytes are left. `to` may be the text itself; NULL only counts. */
size_t sgi_text_whole(char *to, sgi_str text);
/* snprintf, which cuts between characters: at its end, and where a precision does. */
void sgi_text_print(char *out, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
void sgi_text_write(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- the object a member belongs to ---- */

#define SGI_OWNER(ptr, type, member)                                                     \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* TAILQ_FOREACH that survives the removal of the current element. */
#define SGI_TAILQ_EACH(var, head, field, next)                                           \
    for ((var) = TAILQ_FIRST(head); (var) && ((next) = TAILQ_NEXT(var, field), 1);       \
         (var) = (next))

/* ---- time and chance, injected ---- */

typedef struct sgi_env {
    const sgi_mem *mem;
    segue_hooks *hooks; /* never NULL; filled by the runtime */
} sgi_env;

/* Times and durations that a peer, a store or an option gives may be anything: what is
 * made of them stays at the ends of int64_t instead of going round. */
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

int64_t sgi_now(const sgi_env *env);  /* monotonic, ms */
int64_t sgi_wall(const sgi_env *env); /* since 1970, ms */
bool sgi_random(const sgi_env *env, void *bytes, size_t len);

#endif
