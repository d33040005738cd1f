/* Appends JSON to a buffer. The writer adds the commas; the caller must open and close
 * containers correctly. The buffer records a failure (`failed`), so the caller checks for
 * failures once per message. */
#ifndef SGI_JSON_WRITE_H
#define SGI_JSON_WRITE_H

#include "base/buf.h"

typedef struct sgi_jw {
    sgi_buf *buf;
    /* true = the next value needs a comma, because a value stands before it */
    bool comma;
} sgi_jw;

static inline sgi_jw sgi_jw_to(sgi_buf *buf)
{
    return (sgi_jw){buf, false};
}

void sgi_jw_open(sgi_jw *w, char bracket); /* bracket: '{' or '[' */
void sgi_jw_close(sgi_jw *w, char bracket);
/* name: plain ASCII without quotes and backslashes */
void sgi_jw_key(sgi_jw *w, const char *name);
/* name: any text, which the writer escapes */
void sgi_jw_key_str(sgi_jw *w, sgi_str name);
/* name: already escaped, without the quotes */
void sgi_jw_key_json(sgi_jw *w, sgi_str name);
/* text: valid UTF-8, which the writer escapes */
void sgi_jw_string(sgi_jw *w, sgi_str text);
/* Appends a JSON value unchanged. An empty value becomes null. */
void sgi_jw_raw(sgi_jw *w, sgi_str json);
void sgi_jw_int(sgi_jw *w, int64_t value);
void sgi_jw_bool(sgi_jw *w, bool value);
void sgi_jw_null(sgi_jw *w);
/* Writes a double with the fewest of 15, 16 or 17 digits from which the same double is
 * read back. An infinite number and NaN become null. */
void sgi_jw_double(sgi_jw *w, double value);

/* The following functions write a key and a value. */
void sgi_jw_member_string(sgi_jw *w, const char *name, sgi_str text);
void sgi_jw_member_raw(sgi_jw *w, const char *name, sgi_str json);
void sgi_jw_member_int(sgi_jw *w, const char *name, int64_t value);

/* Appends the escaped text, without quotes. */
void sgi_json_escape(sgi_buf *buf, sgi_str text);

#endif
