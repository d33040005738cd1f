/* Percent-encoding, as in URLs. */
#ifndef SGI_PERCENT_H
#define SGI_PERCENT_H

#include "base/base.h"

/* Returns the value of a hexadecimal digit, or -1. */
int sgi_hex_digit(char c);
/* Copies a text, decodes its percent-encoding, and ends it with a NUL. Returns false when
 * the text does not fit into `size` bytes, is malformed or has a NUL. */
bool sgi_percent_decode(char *to, size_t size, sgi_str from);

#endif
