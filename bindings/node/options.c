/* Fills option structs from objects. The tables in option_members.h describe the structs.
 * The key of a member in an object is the member's name in camelCase. A member that is
 * missing, undefined or null stays zero, the default. An unknown key throws a TypeError,
 * so that a program notices a misspelt key. Callbacks are not set from objects. Texts and
 * lists are copies that live until the call ends, because getters may run while an object
 * is read.
 *
 * A test compares the tables with the headers, so that no member is missing. */
#include "addon.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../common/option_members.h"

/* Error texts of more bytes name options as segue.h does. */
#define SPELLED_MAX 4096

/* ---- one member ---- */

static bool fill_bytes(sgnode_frame *frame, char *target, const option *member,
                       napi_value value)
{
    const char *bytes;
    size_t len;
    if (!sgnode_view(frame, value, false, &bytes, &len))
        return false;
    void *copy = sgnode_scratch(frame, len + 1);
    if (!copy)
        return false;
    memcpy(copy, bytes, len);
    *(const void **)(void *)(target + member->offset) = copy;
    *(size_t *)(void *)(target + member->length) = len;
    return true;
}

static bool fill_number(sgnode_frame *frame, void *place, member_kind kind,
                        napi_value value)
{
    int64_t number;
    if (kind == INT32)
        return sgnode_int32(frame, value, 0, place);
    if (!sgnode_int64(frame, value, 0, &number))
        return false;
    if (kind == INT64) {
        *(int64_t *)place = number;
    } else if (number >= 0 && number <= UINT32_MAX) {
        *(uint32_t *)place = (uint32_t)number;
    } else {
        napi_throw_range_error(
            frame->env, "ERR_OUT_OF_RANGE",
            "a whole number of 32 bits that is not negative is required");
        return false;
    }
    return true;
}

static bool fill_member(sgnode_frame *frame, const option *member, char *target,
                        napi_value value)
{
    size_t count;
    void *place = target + member->offset;
    switch (member->kind) {
    case TEXT:
        return sgnode_name(frame, value, false, place);
    case BYTES:
        return fill_bytes(frame, target, member, value);
    case LIST:
        return sgnode_names(frame, value, place, &count);
    case STORE:
        return (*(void **)place = sgnode_unwrap(frame, value, SGNODE_STORE)) != NULL;
    case SERVER:
        return (*(void **)place = sgnode_unwrap(frame, value, SGNODE_SERVER)) != NULL;
    default:
        return fill_number(frame, place, member->kind, value);
    }
}

/* ---- a whole object ---- */

/* Writes the camelCase name of a member: max_depth becomes maxDepth. */
static void make_camel(const char *name, char *camel, size_t size)
{
    size_t len = 0;
    for (; *name && len + 1 < size; name++) {
        if (*name == '_' && name[1])
            camel[len++] = (char)toupper((unsigned char)*++name);
        else
            camel[len++] = *name;
    }
    camel[len] = '\0';
}

static bool is_named(const char *name, const char *key)
{
    for (; *name; name++, key++) {
        if (*name == '_') {
            if (*key != toupper((unsigned char)*++name))
                return false;
        } else if (*key != *name) {
            return false;
        }
    }
    return !*key;
}

static const option *find_member(const option *members, const char *key)
{
    for (; members->name; members++)
        if (is_named(members->name, key))
            return members;
    return NULL;
}

/* Puts the name of the option before the message of the pending exception. */
static void name_option(sgnode_frame *frame, const char *key)
{
    napi_value error, old, made;
    const char *text;
    size_t len;
    char message[256];
    if (napi_get_and_clear_last_exception(frame->env, &error) != napi_ok)
        return;
    if (napi_get_named_property(frame->env, error, "message", &old) == napi_ok &&
        sgnode_typeof(frame, old) == napi_string &&
        sgnode_view(frame, old, false, &text, &len)) {
        snprintf(message, sizeof message, "%s: %s", key, text);
        made = sgnode_string(frame->env, message);
        if (made)
            napi_set_named_property(frame->env, error, "message", made);
    }
    napi_throw(frame->env, error);
}

static void refuse_key(sgnode_frame *frame, const option_struct *shape, const char *key)
{
    char message[160];
    /* A message that snprintf has cut could end in the middle of a character. A message
     * without the key then replaces it. */
    if (snprintf(message, sizeof message, "%s has no option %s", shape->name, key) >=
        (int)sizeof message)
        snprintf(message, sizeof message, "%s has no such option", shape->name);
    napi_throw_type_error(frame->env, "ERR_INVALID_ARG_VALUE", message);
}

static bool fill_key(sgnode_frame *frame, const option_struct *shape, char *target,
                     napi_value object, napi_value key)
{
    const char *name;
    napi_value value;
    if (!sgnode_name(frame, key, false, &name) ||
        napi_get_property(frame->env, object, key, &value) != napi_ok)
        return false;
    const option *member = find_member(shape->members, name);
    if (!member) {
        refuse_key(frame, shape, name);
        return false;
    }
    if (sgnode_is_none(frame, value) || fill_member(frame, member, target, value))
        return true;
    name_option(frame, name);
    return false;
}

bool sgnode_options(sgnode_frame *frame, napi_value object, option_shape which,
                    void *target)
{
    const option_struct *shape = &shapes[which];
    napi_value keys, key;
    uint32_t count;
    memset(target, 0, shape->size);
    memcpy(target, &shape->size, sizeof shape->size); /* struct_size */
    if (!object || sgnode_is_none(frame, object))
        return true;
    if (sgnode_typeof(frame, object) != napi_object) {
        sgnode_type_error(frame, "an object", shape->name);
        return false;
    }
    if (napi_get_all_property_names(frame->env, object, napi_key_own_only,
                                    napi_key_enumerable | napi_key_skip_symbols,
                                    napi_key_numbers_to_strings, &keys) != napi_ok ||
        napi_get_array_length(frame->env, keys, &count) != napi_ok)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (napi_get_element(frame->env, keys, i, &key) != napi_ok ||
            !fill_key(frame, shape, target, object, key))
            return false;
    return true;
}

/* ---- names in error texts ---- */

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* True for the name of a member of any struct. */
static bool is_member(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (const option *member = shapes[i].members; member && member->name; member++)
            if (!strcmp(member->name, name))
                return true;
    return false;
}

napi_value sgnode_error_text(napi_env env, const segue_error_view *view)
{
    char text[SPELLED_MAX], name[64];
    const char *from = view->message;
    size_t len = 0;
    /* a text of the peer names the options of the peer */
    if (!from || view->rpc_code || strlen(from) >= sizeof text)
        return sgnode_string(env, from);
    while (*from) {
        size_t word = 0;
        while (is_of_word(from[word]))
            word++;
        if (memchr(from, '_', word) && word < sizeof name) {
            memcpy(name, from, word);
            name[word] = '\0';
            if (is_member(name)) {
                make_camel(name, text + len, sizeof text - len);
                len += strlen(text + len);
                from += word;
                continue;
            }
        }
        word += !word;
        memcpy(text + len, from, word);
        len += word;
        from += word;
    }
    text[len] = '\0';
    return sgnode_string(env, text);
}

static napi_value list_members(sgnode_frame *frame, const option *member)
{
    char camel[64];
    napi_value list;
    if (napi_create_array(frame->env, &list) != napi_ok)
        return NULL;
    for (uint32_t i = 0; member->name; member++, i++) {
        make_camel(member->name, camel, sizeof camel);
        napi_set_element(frame->env, list, i, sgnode_string(frame->env, camel));
    }
    return list;
}

napi_value sgnode_option_names(sgnode_frame *frame)
{
    napi_value all;
    if (napi_create_object(frame->env, &all) != napi_ok)
        return NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].name)
            napi_set_named_property(frame->env, all, shapes[i].name,
                                    list_members(frame, shapes[i].members));
    return all;
}
