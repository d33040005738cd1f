#include "engine/error.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct status_row {
    segue_status value;
    const char *name;
    const char *text;
    bool retryable;
} status_row;

static const status_row status_rows[] = {
#define SGI_STATUS(name, value, text, retryable) {value, #name, text, retryable},
#include "api/errors.def"
#undef SGI_STATUS
};

static const status_row *find_status(segue_status status)
{
    for (size_t i = 0; i < sizeof status_rows / sizeof *status_rows; i++)
        if (status_rows[i].value == status)
            return &status_rows[i];
    return NULL;
}

const char *sgi_status_name(segue_status status)
{
    const status_row *row = find_status(status);
    return row ? row->name : "SEGUE_E_UNKNOWN";
}

const char *sgi_status_text(segue_status status)
{
    const status_row *row = find_status(status);
    return row ? row->text : "unknown status";
}

bool sgi_status_is_retryable(segue_status status)
{
    const status_row *row = find_status(status);
    return row && row->retryable;
}

/* Stands for a new error when there is no memory. sgi_error_free does nothing with this
 * error. */
static segue_error out_of_memory = {
    .view = {.status = SEGUE_E_NOMEM, .message = "out of memory"},
};

/* Copies a text. If the text was cut in the middle of a character, the copy omits the
 * incomplete character. */
static char *copy_whole(const sgi_mem *mem, sgi_str text)
{
    size_t len = sgi_text_drop_broken_chars(NULL, text);
    char *copy = sgi_alloc(mem, len + 1);
    if (copy) {
        sgi_text_drop_broken_chars(copy, text);
        copy[len] = 0;
    }
    return copy;
}

/* True when the peer says when the same call may be made again. */
static bool names_a_time(sgi_json data)
{
    int64_t ms;
    return sgi_json_read_int(sgi_json_get(data, "retryAfterMs"), &ms);
}

segue_error *sgi_error_new(const sgi_mem *mem, segue_status status, int32_t rpc_code,
                           sgi_str message, sgi_str data)
{
    segue_error *error = sgi_zalloc(mem, sizeof *error);
    if (!error)
        return &out_of_memory;
    error->mem_copy = *mem;
    error->mem = &error->mem_copy;
    error->view.status = status;
    error->view.retryable = sgi_status_is_retryable(status) || names_a_time(data);
    error->view.rpc_code = rpc_code;
    if (message.n) /* a text from a peer can contain NUL; the copy ends there */
        message.n = strnlen(message.p, message.n);
    error->view.message = copy_whole(mem, message);
    error->view.data = data.n ? sgi_text_dup(mem, data) : NULL;
    error->view.data_len = data.n;
    if (!error->view.message || (data.n && !error->view.data)) {
        sgi_error_free(error);
        return &out_of_memory;
    }
    return error;
}

segue_status sgi_error_return(segue_error **out, const sgi_mem *mem, segue_status status,
                              const char *format, ...)
{
    if (out) {
        char text[400];
        va_list args;
        va_start(args, format);
        sgi_text_vformat(text, sizeof text, format, args);
        va_end(args);
        *out = sgi_error_new(mem, status, 0, sgi_str_of(text), (sgi_str){0});
    }
    return status;
}

void sgi_error_free(segue_error *error)
{
    if (!error || !error->mem)
        return;
    sgi_mem mem = *error->mem;
    sgi_text_free(&mem, (char *)error->view.message);
    if (error->view.data)
        sgi_free(&mem, (char *)error->view.data, error->view.data_len + 1);
    sgi_free(&mem, error, sizeof *error);
}
