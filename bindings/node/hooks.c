/* Hooks: callbacks whose answer the library needs at once. A hook is a JavaScript
 * function that runs inside runtimeDispatch. If a hook throws, the exception becomes an
 * event and the answer is "no": the principal is refused, the value is not checked, no
 * token is returned. A transport argument is a view, which can be used only until the
 * hook returns. A text that a hook returns is kept in the user until the next hook runs,
 * as the library requires.
 *
 * Hooks open no handle scope: an exception of a hook is put into the batch, which lives
 * longer than such a scope. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

typedef struct question {
    sgnode_user *user;
    napi_env env;
    const char *where;
} question;

/* Returns whether the hook exists and a batch is open. Without a batch, no JavaScript may
 * run. */
static bool begin(question *self, void *opaque, int which, const char *where)
{
    sgnode_user *user = opaque;
    if (!user->host->has_batch || !user->hooks[which])
        return false;
    self->user = user;
    self->env = user->host->self->env;
    self->where = where;
    return true;
}

/* Calls a hook and returns its answer. Returns NULL when an argument is NULL or the hook
 * throws. The exception of the hook becomes an event. */
static napi_value ask(question *self, int which, size_t count,
                      const napi_value *arguments)
{
    napi_value function, receiver, result;
    for (size_t i = 0; i < count; i++)
        if (!arguments[i])
            return NULL;
    if (napi_get_reference_value(self->env, self->user->hooks[which], &function) !=
            napi_ok ||
        napi_get_undefined(self->env, &receiver) != napi_ok)
        return NULL;
    if (napi_call_function(self->env, receiver, function, count, arguments, &result) ==
        napi_ok)
        return result;
    sgnode_push_exception(self->user->host, self->where);
    return NULL;
}

static napi_valuetype type_of(question *self, napi_value value)
{
    napi_valuetype type = napi_undefined;
    if (value)
        napi_typeof(self->env, value, &type);
    return type;
}

static bool is_none(question *self, napi_value value)
{
    napi_valuetype type = type_of(self, value);
    return type == napi_undefined || type == napi_null;
}

/* Reports as an event that a hook returned an invalid value. */
static void complain(question *self, const char *why)
{
    napi_throw_type_error(self->env, "ERR_INVALID_RETURN_VALUE", why);
    sgnode_push_exception(self->user->host, self->where);
}

static const char *const another_type =
    "the callback has to return a string, null or undefined, and not a Promise";

/* Checks that the UTF-8 text is exactly the string that the hook returned, and reports a
 * difference. Without this check two strings could become the same text, or a NUL could
 * cut the text short. */
static bool is_exact(question *self, napi_value result, const char *text, size_t len)
{
    switch (sgnode_flaw_of(self->env, result, text, len)) {
    case SGNODE_HAS_NUL:
        complain(self, "the string must not have a NUL character");
        return false;
    case SGNODE_HAS_HALF_PAIR:
        complain(self, "the string must not have half a surrogate pair");
        return false;
    case SGNODE_UNREADABLE:
        return false;
    default:
        return true;
    }
}

/* Reads the answer of a hook and keeps the text in the `answer` of the sgnode_user.
 * The answer must be a string, null or undefined; null and undefined give NULL.
 * Returns false for any other answer, and for a string that UTF-8 cannot represent
 * exactly. */
static bool keep_text(question *self, napi_value result, const char **text, size_t *len)
{
    size_t size;
    *text = NULL;
    *len = 0;
    if (is_none(self, result))
        return true;
    if (type_of(self, result) != napi_string ||
        napi_get_value_string_utf8(self->env, result, NULL, 0, &size) != napi_ok) {
        complain(self, another_type);
        return false;
    }
    char *answer = malloc(size + 1);
    if (!answer ||
        napi_get_value_string_utf8(self->env, result, answer, size + 1, len) != napi_ok ||
        !is_exact(self, result, answer, *len)) {
        free(answer);
        return false;
    }
    free(self->user->answer);
    *text = self->user->answer = answer;
    return true;
}

static napi_value show(question *self, segue_transport *transport, sgnode_box **view)
{
    sgnode_host *host = self->user->host;
    return sgnode_wrap_view(host->self, SGNODE_TRANSPORT, transport, host, view);
}

segue_status sgnode_ask_principal(void *user, segue_transport *transport,
                                  const char **principal)
{
    question self;
    sgnode_box *view;
    size_t len;
    segue_status status = SEGUE_E_REFUSED;
    if (!begin(&self, user, SGNODE_HOOK_FIRST, "principal"))
        return status;
    napi_value argument = show(&self, transport, &view);
    napi_value result = ask(&self, SGNODE_HOOK_FIRST, 1, &argument);
    sgnode_view_end(view);
    if (result && type_of(&self, result) != napi_boolean &&
        keep_text(&self, result, principal, &len))
        status = SEGUE_OK;
    return status;
}

static void tell_reason(question *self, napi_value result, char *reason, size_t size)
{
    size_t len = 0;
    if (size)
        napi_get_value_string_utf8(self->env, result, reason, size, &len);
    for (size_t i = 0; i < len; i++)
        if (!reason[i])
            reason[i] = ' '; /* a NUL would cut the reason short */
}

segue_status sgnode_ask_validate(void *user, const char *tool, int32_t what,
                                 const char *schema, size_t schema_len, const char *value,
                                 size_t value_len, char *reason, size_t size)
{
    question self;
    segue_status status = SEGUE_E_UNSUPPORTED;
    if (!begin(&self, user, SGNODE_HOOK_SECOND, "validate"))
        return status;
    napi_env env = self.env;
    const napi_value arguments[] = {sgnode_string(env, tool), sgnode_number(env, what),
                                    sgnode_text(env, schema, schema_len),
                                    sgnode_text(env, value, value_len)};
    napi_value result = ask(&self, SGNODE_HOOK_SECOND, 4, arguments);
    napi_valuetype type = type_of(&self, result);
    if (result && (type == napi_undefined || type == napi_null)) {
        status = SEGUE_OK;
    } else if (type == napi_string) {
        tell_reason(&self, result, reason, size);
        status = SEGUE_E_INVALID;
    } else if (result && type != napi_boolean) {
        complain(&self, another_type);
    }
    return status;
}

void sgnode_ask_headers(void *user, segue_transport *transport, int32_t status)
{
    question self;
    sgnode_box *view;
    if (!begin(&self, user, SGNODE_HOOK_FIRST, "onHeaders"))
        return;
    const napi_value arguments[] = {show(&self, transport, &view),
                                    sgnode_number(self.env, status)};
    ask(&self, SGNODE_HOOK_FIRST, 2, arguments);
    sgnode_view_end(view);
}

void sgnode_ask_bearer(void *user, segue_transport *transport, segue_bearer *bearer)
{
    question self;
    sgnode_box *view;
    if (!begin(&self, user, SGNODE_HOOK_FIRST, "onBearer")) {
        segue_bearer_free(bearer);
        return;
    }
    sgnode_host *host = self.user->host;
    const napi_value arguments[] = {sgnode_wrap(host->self, SGNODE_BEARER, bearer, host),
                                    show(&self, transport, &view)};
    ask(&self, SGNODE_HOOK_FIRST, 2, arguments);
    sgnode_view_end(view);
}

const char *sgnode_ask_assertion(void *user, const char *issuer, const char *resource,
                                 size_t *len)
{
    question self;
    const char *text = NULL;
    if (!begin(&self, user, SGNODE_HOOK_FIRST, "onAssertion"))
        return NULL;
    const napi_value arguments[] = {sgnode_string(self.env, issuer),
                                    sgnode_string(self.env, resource)};
    napi_value result = ask(&self, SGNODE_HOOK_FIRST, 2, arguments);
    if (result)
        keep_text(&self, result, &text, len);
    return text;
}

const char *sgnode_ask_load(void *user, const char *key, size_t *len)
{
    question self;
    const char *text = NULL;
    if (!begin(&self, user, SGNODE_HOOK_SECOND, "onLoad"))
        return NULL;
    const napi_value argument = sgnode_string(self.env, key);
    napi_value result = ask(&self, SGNODE_HOOK_SECOND, 1, &argument);
    if (result)
        keep_text(&self, result, &text, len);
    return text;
}

void sgnode_ask_save(void *user, const char *key, const char *json, size_t len)
{
    question self;
    if (!begin(&self, user, SGNODE_HOOK_THIRD, "onSave"))
        return;
    const napi_value arguments[] = {sgnode_string(self.env, key),
                                    sgnode_text(self.env, json, len)};
    ask(&self, SGNODE_HOOK_THIRD, 2, arguments);
}
