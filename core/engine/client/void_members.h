/* Writes objects without the members that say which segments are void. These members are
 * meant for the library alone, so the application does not see them. */
#ifndef SGI_VOID_MEMBERS_H
#define SGI_VOID_MEMBERS_H

#include "wire/json_read.h"
#include "wire/json_write.h"

/* True when this _meta says that segments were replaced, or that the text of a segment is
 * continued by a later one. */
bool sgi_meta_reports_void_segments(sgi_json meta);
/* Writes the object without the members of these names, and without the members of _meta
 * that are about void segments. names: a list that NULL ends. */
void sgi_object_write_without_void_report(sgi_json object, const char *const *names,
                                          sgi_buf *out);
/* Writes a result without the members about void segments. Returns false, and writes
 * nothing, when the result has no such members. */
bool sgi_result_write_without_void_report(sgi_json result, sgi_buf *out);

#endif
