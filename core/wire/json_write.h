/* The JSON appender: values in, bytes at the end of a buffer. It puts the commas;
 * nesting is the caller's business. Failure is the buffer's (sticky), checked once per
 * message. */
#ifndef SGI_JSON_WRITE_H
#define SGI_JSON_WRITE_H

#include "base/buf.h"

typedef struct sgi_jw {
    sgi_buf *buf;
    bool comma; /* a value stands before: the next one needs a comma */
} sgi_jw;

static inline sgi_jw sgi_jw_on(sgi_buf *buf)
{
    return (sgi_jw){buf, false};
}

void sgi_jw_open(sgi_jw *w, char bracket); /* '{' or '[' */
void sgi_jw_close(sgi_jw *w, char bracket);
void sgi_jw_key(sgi_jw *w, const char *name);  /* a plain ASCII name */
void sgi_jw_key_str(sgi_jw *w, sgi_str name);  /* any name, escaped */
void sgi_jw_key_json(sgi_jw *w, sgi_str name); /* as it stands in JSON, without quotes */
void sgi_jw_string(sgi_jw *w, sgi_str text);   /* valid UTF-8; escaped */
/* A value that has passed the reader; an empty span, the sign of none, becomes null. */
void sgi_jw_raw(sgi_jw *w, sgi_str json);
void sgi_jw_int(sgi_jw *w, int64_t value);
void sgi_jw_bool(sgi_jw *w, bool value);
void sgi_jw_null(sgi_jw *w);
/* The fewest of 15, 16 or 17 digits that read back the same; null when not finite. */
void sgi_jw_double(sgi_jw *w, double value);

/* key and value in one */
void sgi_jw_member_string(sgi_jw *w, const char *name, sgi_str text);
void sgi_jw_member_raw(sgi_jw *w, const char *name, sgi_str json);
void sgi_jw_member_int(sgi_jw *w, const char *name, int64_t value);

/* The escaped text without quotes. */
void sgi_json_escape(sgi_buf *buf, sgi_str text);

#endif
