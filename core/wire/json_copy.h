/* Copies members of a JSON text that was read into JSON that is being written. Names and
 * values are copied unchanged, with their escapes. */
#ifndef SGI_JSON_COPY_H
#define SGI_JSON_COPY_H

#include "wire/json_read.h"
#include "wire/json_write.h"

/* Makes a list of names for the functions of this header. The last element of a list is
 * NULL. */
#define SGI_JSON_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

bool sgi_json_key_is_one_of(const sgi_json_member *member, const char *const *names);
void sgi_jw_copy_member(sgi_jw *w, const sgi_json_member *member);
/* Copies the members of an object, except members with the names in `except` (may be
 * NULL). A value that is not an object has no members. Returns true when at least one
 * member was copied. */
bool sgi_jw_copy_members(sgi_jw *w, sgi_json object, const char *const *except);

#endif
