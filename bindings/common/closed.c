#include "closed.h"

#include <stddef.h>
#include <string.h>

const char *sgb_closed_text(const char *kind)
{
    static const struct {
        const char *kind, *text;
    } rows[] = {
        {"Runtime", "the library has ended in this thread"},
        {"Store", "the store is closed"},
        {"Server", "the server is closed"},
        {"Listener", "the listener is closed"},
        {"Session", "the session is closed"},
        {"Call", "the call has ended, so its context cannot be used any more"},
        {"Request", "the request has ended"},
        {"Task", "the task object is closed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(kind, rows[i].kind))
            return rows[i].text;
    return "the handle is closed";
}
