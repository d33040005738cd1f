/* Handles as JavaScript values. A handle is an external with the tag of its kind, which
 * points to a box.
 *
 *   wrapped   ptr set                   usable while the runtime exists
 *   consumed  ptr NULL                  the library took it (an attached transport)
 *   freed     ptr NULL                  by xFree
 *
 * Each box owns its handle and frees the handle when the value is collected. The library
 * allows freeing a handle at any time, even after the runtime was freed. Using a handle
 * that is not in the state "wrapped" throws ClosedError. A handle of another kind, or an
 * external of another addon, throws a TypeError: the tag is checked before the pointer is
 * used. Checking tags is slow, so the addresses of checked boxes are remembered until the
 * box is freed.
 *
 * A "kept" box can serve another request when its request was freed. Making a new
 * external with a tag and a finalizer would cost more than the rest of a short request. A
 * kept box also keeps the user of its requests.
 *
 * The argument of a hook (such as a transport inside principal) is a view: a box that is
 * emptied when the hook returns. */
#include "addon.h"
#include "../common/closed.h"

#include <stdint.h>
#include <stdlib.h>

struct sgnode_box {
    sgnode_env *self; /* state of the environment; a counted reference */
    /* host of the handle's runtime; a counted reference; NULL for a store */
    sgnode_host *host;
    void *ptr; /* the handle; NULL once the handle is freed or consumed */
    sgnode_kind kind;
    /* the user that this box keeps for its next request; NULL = the box keeps no user */
    sgnode_user *user;
};

/* The first part of the tag, 62d3c5a6-8f0b-4a51-9d31-73656775xxxx, which no other addon
 * uses. The last digits are the kind of handle. */
#define TAG_LOW UINT64_C(0x62d3c5a68f0b4a51)
#define TAG_HIGH UINT64_C(0x9d31736567750000)

typedef void (*free_fn)(void *ptr);

#define FREE_AS(noun)                                                                    \
    static void free_##noun(void *ptr)                                                   \
    {                                                                                    \
        segue_##noun##_free(ptr);                                                        \
    }

FREE_AS(transport)
FREE_AS(store)
FREE_AS(server)
FREE_AS(listener)
FREE_AS(exchange)
FREE_AS(bearer)
FREE_AS(call)
FREE_AS(session)
FREE_AS(request)
FREE_AS(task)
FREE_AS(content)

typedef struct row {
    const char *name;
    free_fn free;
} row;

/* The name of each kind of handle, and the function that frees a handle of this kind. A
 * runtime has no such function, because its host frees it. */
static const row rows[SGNODE_KINDS] = {
    [SGNODE_RUNTIME] = {"Runtime", NULL},
    [SGNODE_TRANSPORT] = {"Transport", free_transport},
    [SGNODE_STORE] = {"Store", free_store},
    [SGNODE_SERVER] = {"Server", free_server},
    [SGNODE_LISTENER] = {"Listener", free_listener},
    [SGNODE_EXCHANGE] = {"Exchange", free_exchange},
    [SGNODE_BEARER] = {"Bearer", free_bearer},
    [SGNODE_CALL] = {"Call", free_call},
    [SGNODE_SESSION] = {"Session", free_session},
    [SGNODE_REQUEST] = {"Request", free_request},
    [SGNODE_TASK] = {"Task", free_task},
    [SGNODE_CONTENT] = {"Content", free_content},
    [SGNODE_TEXT] = {"Text", sgnode_late_free},
    [SGNODE_WIRE] = {"Wire", sgb_transport_unref},
};

const char *sgnode_kind_name(sgnode_kind kind)
{
    return rows[kind].name;
}

static const sgnode_box **known_place(sgnode_env *self, const sgnode_box *box)
{
    uintptr_t address = (uintptr_t)box;
    return &self->known[(address >> 6 ^ address >> 14) % SGNODE_KNOWN];
}

/* ---- making and freeing ---- */

static void free_ptr(sgnode_kind kind, void *ptr, sgnode_host *host)
{
    if (kind == SGNODE_RUNTIME)
        sgnode_host_end(host);
    else
        rows[kind].free(ptr);
}

static void empty_box(sgnode_box *box)
{
    void *ptr = box->ptr;
    if (!ptr)
        return;
    box->ptr = NULL;
    box->self->live[box->kind]--;
    free_ptr(box->kind, ptr, box->host);
}

static void free_box(sgnode_box *box)
{
    const sgnode_box **place = known_place(box->self, box);
    if (*place == box)
        *place = NULL;
    empty_box(box);
    if (box->user) {
        box->user->keeper = NULL;
        if (box->user->is_idle)
            sgnode_user_free(box->user);
    }
    if (box->host)
        sgnode_host_unref(box->host);
    sgnode_env_unref(box->self);
    free(box);
}

static void finalize_box(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    free_box(data);
}

static sgnode_box *make_box(sgnode_env *self, sgnode_kind kind, void *ptr,
                            sgnode_host *host)
{
    sgnode_box *box = malloc(sizeof *box);
    if (!box)
        return NULL;
    box->self = sgnode_env_ref(self);
    box->host = host ? sgnode_host_ref(host) : NULL;
    box->ptr = ptr;
    box->kind = kind;
    box->user = NULL;
    self->live[kind]++;
    return box;
}

/* Makes the JavaScript value of a box. The finalizer is set before the tag, so a value
 * that gets no tag still frees its box when the value is collected. */
static napi_value show_box(sgnode_env *self, sgnode_box *box)
{
    napi_value value;
    const napi_type_tag tag = {TAG_LOW, TAG_HIGH + (uint64_t)box->kind};
    if (napi_create_external(self->env, box, finalize_box, NULL, &value) != napi_ok) {
        free_box(box);
        return NULL;
    }
    return napi_type_tag_object(self->env, value, &tag) == napi_ok ? value : NULL;
}

napi_value sgnode_wrap(sgnode_env *self, sgnode_kind kind, void *ptr, sgnode_host *host)
{
    sgnode_box *box = make_box(self, kind, ptr, host);
    if (box)
        return show_box(self, box);
    free_ptr(kind, ptr, host);
    return NULL;
}

napi_value sgnode_wrap_kept(sgnode_env *self, segue_request *request, sgnode_user *user)
{
    sgnode_box *box = make_box(self, SGNODE_REQUEST, request, user->host);
    if (!box) {
        segue_request_free(request);
        return NULL;
    }
    box->user = user;
    user->keeper = box;
    return show_box(self, box);
}

napi_value sgnode_wrap_view(sgnode_env *self, sgnode_kind kind, void *ptr,
                            sgnode_host *host, sgnode_box **box)
{
    sgnode_env *kept = sgnode_env_ref(self);
    *box = make_box(self, kind, ptr, host);
    napi_value value = NULL;
    if (*box) {
        const napi_type_tag tag = {TAG_LOW, TAG_HIGH + (uint64_t)kind};
        if (napi_create_external(self->env, *box, finalize_box, NULL, &value) !=
            napi_ok) {
            (*box)->ptr = NULL;
            self->live[kind]--;
            free_box(*box);
            *box = NULL;
            value = NULL;
        } else if (napi_type_tag_object(self->env, value, &tag) != napi_ok) {
            value = NULL;
        }
    }
    sgnode_env_unref(kept);
    return value;
}

void sgnode_view_end(sgnode_box *box)
{
    if (!box || !box->ptr)
        return;
    box->ptr = NULL;
    box->self->live[box->kind]--;
}

/* ---- using ---- */

static sgnode_box *wrong_kind(sgnode_frame *frame, sgnode_kind kind)
{
    sgnode_type_error(frame, rows[kind].name, "a handle");
    return NULL;
}

static sgnode_box *find_box(sgnode_frame *frame, napi_value value, sgnode_kind kind)
{
    void *data;
    bool is_ours = false;
    if (napi_get_value_external(frame->env, value, &data) != napi_ok)
        return wrong_kind(frame, kind);
    sgnode_box *box = data;
    const sgnode_box **place = known_place(frame->self, box);
    if (*place == box)
        return box->kind == kind ? box : wrong_kind(frame, kind);
    const napi_type_tag tag = {TAG_LOW, TAG_HIGH + (uint64_t)kind};
    if (napi_check_object_type_tag(frame->env, value, &tag, &is_ours) != napi_ok ||
        !is_ours)
        return wrong_kind(frame, kind);
    *place = box;
    return box;
}

static napi_value throw_closed(sgnode_frame *frame, sgnode_kind kind)
{
    segue_error_new(SEGUE_E_CLOSED, sgb_closed_text(rows[kind].name), &frame->error);
    return sgnode_throw(frame, SEGUE_E_CLOSED);
}

void *sgnode_unwrap_of(sgnode_frame *frame, napi_value value, sgnode_kind kind,
                       sgnode_host **host)
{
    sgnode_box *box = find_box(frame, value, kind);
    if (!box)
        return NULL;
    if (!box->ptr || (box->host && !box->host->runtime)) {
        throw_closed(frame, kind);
        return NULL;
    }
    if (host)
        *host = box->host;
    return box->ptr;
}

void *sgnode_unwrap(sgnode_frame *frame, napi_value value, sgnode_kind kind)
{
    return sgnode_unwrap_of(frame, value, kind, NULL);
}

/* Empties the box of a handle that the library has consumed. The caller has unwrapped the
 * value before, so the value is a handle of this addon. */
void sgnode_consume(sgnode_frame *frame, napi_value value)
{
    void *data = NULL;
    if (napi_get_value_external(frame->env, value, &data) == napi_ok)
        sgnode_view_end(data);
}

napi_value sgnode_release(sgnode_frame *frame, sgnode_kind kind)
{
    sgnode_box *box = find_box(frame, frame->arg[0], kind);
    if (!box)
        return NULL;
    if (!box->ptr)
        return throw_closed(frame, kind);
    empty_box(box);
    return NULL;
}

/* ---- kept boxes ---- */

sgnode_box *sgnode_find_kept(sgnode_frame *frame, napi_value value, sgnode_user **user)
{
    sgnode_box *box = find_box(frame, value, SGNODE_REQUEST);
    if (!box)
        return NULL;
    if (box->ptr || !box->user || !box->user->is_idle) {
        sgnode_throw(frame, SEGUE_E_STATE);
        return NULL;
    }
    *user = box->user;
    return box;
}

void sgnode_fill_kept(sgnode_box *box, segue_request *request)
{
    box->ptr = request;
    box->self->live[SGNODE_REQUEST]++;
}

void sgnode_empty_kept(sgnode_box *box)
{
    empty_box(box);
}
