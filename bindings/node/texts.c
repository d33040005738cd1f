/* Long texts of results. A string of a long text would take many milliseconds to make, in
 * the turn of the event loop in which the result arrives. So a long text stays in the
 * library's memory, and JavaScript gets a handle. The handle becomes a string when the
 * application first reads the text. */
#include "addon.h"

#include <stdlib.h>

/* A shorter text becomes a string at once, which then costs less than a handle. */
#define LATE_BYTES ((size_t)128 * 1024)
/* V8 may make no string of a longer text. The request must fail in this case, so the
 * string is made at once. */
#define LATE_MAX_BYTES ((size_t)256 * 1024 * 1024)

struct sgnode_late {
    napi_env env; /* the environment whose collector counts the bytes */
    const segue_allocator *allocator; /* NULL = malloc */
    char *text;
    size_t len, size;
};

static void release(const segue_allocator *allocator, char *text, size_t size)
{
    if (allocator)
        allocator->release(allocator->user, text, size);
    else
        free(text);
}

static void count_bytes(const sgnode_late *late, int64_t change)
{
    int64_t sum;
    napi_adjust_external_memory(late->env, change, &sum);
}

void sgnode_late_free(void *opaque)
{
    sgnode_late *late = opaque;
    count_bytes(late, -(int64_t)late->size);
    release(late->allocator, late->text, late->size);
    free(late);
}

static napi_value make_late(sgnode_host *host, const sgnode_late *made)
{
    sgnode_late *late = malloc(sizeof *late);
    if (!late) {
        release(made->allocator, made->text, made->size);
        return NULL;
    }
    *late = *made;
    count_bytes(late, (int64_t)late->size);
    return sgnode_wrap(host->self, SGNODE_TEXT, late, NULL);
}

napi_value sgnode_take_result(sgnode_host *host, segue_request *request, bool *says_error)
{
    sgnode_late late = {.env = host->self->env, .allocator = host->allocator};
    int32_t says = 0;
    segue_status status =
        segue_request_take_result(request, &late.text, &late.len, &late.size, &says);
    *says_error = says;
    if (status == SEGUE_E_NOT_FOUND)
        return sgnode_null(late.env);
    if (status != SEGUE_OK)
        return NULL;
    if (late.len >= LATE_BYTES && late.len <= LATE_MAX_BYTES)
        return make_late(host, &late);
    napi_value text = sgnode_text(late.env, late.text, late.len);
    release(late.allocator, late.text, late.size);
    return text;
}

static napi_value text_read(sgnode_frame *frame)
{
    const sgnode_late *late = sgnode_unwrap(frame, frame->arg[0], SGNODE_TEXT);
    if (!late)
        return NULL;
    napi_value text = sgnode_text(frame->env, late->text, late->len);
    return text ? text : sgnode_throw(frame, SEGUE_E_NOMEM);
}

static napi_value text_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_TEXT);
}

const sgnode_row sgnode_text_rows[] = {
    {"textRead", text_read},
    {"textFree", text_free},
    {NULL, NULL},
};
