/* Short fingerprints of texts: SipHash-1-3 with 128 bits of output. Two texts that nobody
 * has chosen have one fingerprint with a probability of 2^-128. Who knows the key and
 * chooses the texts can make such a pair, so a fingerprint must not stand between two
 * parties: SHA-256 (crypto.h) does that, at twenty times the cost. The values do not
 * depend on the machine or the version, so they can be stored. */
#ifndef SGI_FINGERPRINT_H
#define SGI_FINGERPRINT_H

#include "base/base.h"

#define SGI_FINGERPRINT_SIZE 16

/* The fingerprint is that of each part's length, in 8 bytes, and its bytes, padded with
 * zeros to a multiple of 8. So no two lists of parts look the same. */
void sgi_fingerprint(uint8_t out[SGI_FINGERPRINT_SIZE],
                     const uint8_t key[SGI_FINGERPRINT_SIZE], const sgi_str *parts,
                     size_t count);

#endif
