/* The account of a server is above the accounts of its principals. If the limits of both
 * accounts would be exceeded, the server's limit is reported: the principal alone could
 * not make room. */
#include "engine/log/account.h"

bool sgi_byte_account_allows(const sgi_byte_account *account, size_t bytes,
                             sgi_limit *limit)
{
    bool allows = true;
    for (; account; account = account->above) {
        if (account->bytes + bytes <= (size_t)account->limit.value)
            continue;
        *limit = account->limit;
        allows = false;
    }
    return allows;
}

bool sgi_byte_account_slows_producers(const sgi_byte_account *account)
{
    for (; account; account = account->above)
        if (account->bytes >= (size_t)account->limit.value / 2)
            return true;
    return false;
}
