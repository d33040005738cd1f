/* Counts the bytes that operations hold in memory. The bytes of an operation count in the
 * account of its principal and in the account above it, that of the whole server. */
#ifndef SGI_ACCOUNT_H
#define SGI_ACCOUNT_H

#include "base/limit.h"

typedef struct sgi_account sgi_account;
struct sgi_account {
    size_t bytes;
    sgi_limit limit; /* the largest number of bytes that is allowed */
    /* the account above this one, which counts these bytes too; NULL = there is none */
    sgi_account *above;
};

static inline void sgi_account_add(sgi_account *account, size_t bytes)
{
    for (; account; account = account->above)
        account->bytes += bytes;
}

static inline void sgi_account_subtract(sgi_account *account, size_t bytes)
{
    for (; account; account = account->above)
        account->bytes -= bytes;
}

/* True when `bytes` more bytes are allowed. Otherwise *limit is the limit that would be
 * exceeded; if there are several, the limit of the highest account. */
bool sgi_account_allows(const sgi_account *account, size_t bytes, sgi_limit *limit);
/* True when half of a limit is in use. Handlers must then wait until their entries are
 * durable. */
bool sgi_account_slows_producers(const sgi_account *account);

#endif
