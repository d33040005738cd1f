/* Counts the bytes that operations hold in memory. The bytes of an operation count in the
 * account of its principal, and in the account of the whole server, which is above the
 * principal's account. */
#ifndef SGI_ACCOUNT_H
#define SGI_ACCOUNT_H

#include "base/limit.h"

typedef struct sgi_byte_account sgi_byte_account;
struct sgi_byte_account {
    size_t bytes;
    sgi_limit limit; /* the maximum number of bytes, with its name */
    /* the next higher account, which counts the same bytes too; NULL = this is the
     * highest account */
    sgi_byte_account *above;
};

static inline void sgi_byte_account_add(sgi_byte_account *account, size_t bytes)
{
    for (; account; account = account->above)
        account->bytes += bytes;
}

static inline void sgi_byte_account_subtract(sgi_byte_account *account, size_t bytes)
{
    for (; account; account = account->above)
        account->bytes -= bytes;
}

/* True when `bytes` more bytes are allowed. Otherwise sets *limit to the limit that would
 * be exceeded. If several limits would be exceeded, *limit is the limit of the highest
 * account. */
bool sgi_byte_account_allows(const sgi_byte_account *account, size_t bytes,
                             sgi_limit *limit);
/* True when at least half of a limit is used. Handlers of stored operations must then
 * wait until their entries are durable. */
bool sgi_byte_account_slows_producers(const sgi_byte_account *account);

#endif
