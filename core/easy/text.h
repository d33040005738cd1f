/* easy: the functions of <segue/easy.h>, for programs in C. This folder uses only the
 * public headers and libc, as a program of an application does. Texts come from malloc.
 * The proxy has the growing text, too: it compiles text.c for itself.
 *
 * A growing text: after a failed allocation it takes no more bytes and gives NULL. */
#ifndef SGI_EASY_TEXT_H
#define SGI_EASY_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <segue/easy.h>

typedef struct sgi_easy_text {
    char *p;
    size_t len, room;
    bool failed;
} sgi_easy_text;

void sgi_easy_add(sgi_easy_text *text, const char *bytes, size_t len);
/* Adds a text as a JSON string. Returns SEGUE_E_INVALID when it is not UTF-8. A failed
 * allocation shows in the text only. */
segue_status sgi_easy_add_quoted(sgi_easy_text *text, const char *bytes, size_t len);
/* Gives the text with a NUL to the caller, who frees it. Returns SEGUE_E_NOMEM, without a
 * text, after a failed allocation. */
segue_status sgi_easy_give(sgi_easy_text *text, char **out);
void sgi_easy_drop(sgi_easy_text *text);

#endif
