/* Fills missing fields of an answer with the defaults of the form's schema. Only strings,
 * numbers, booleans and lists of strings are valid values of an answer. A default of
 * another type is a mistake of the server and is ignored, because the server would not
 * accept this value in an answer. */
#include "engine/client/defaults.h"

#include "engine/input/answer_form.h"
#include "wire/json_copy.h"

static bool is_list_of_strings(sgi_json value)
{
    sgi_json item;
    for (size_t at = 0; sgi_json_next_item(value, &at, &item);)
        if (sgi_json_kind_of(item) != SGI_JSON_STRING)
            return false;
    return true;
}

static bool can_be_said(sgi_json value)
{
    switch (sgi_json_kind_of(value)) {
    case SGI_JSON_STRING:
    case SGI_JSON_NUMBER:
    case SGI_JSON_TRUE:
    case SGI_JSON_FALSE:
        return true;
    case SGI_JSON_ARRAY:
        return is_list_of_strings(value);
    default:
        return false;
    }
}

bool sgi_answer_is_well_formed(bool elicits, sgi_json answer)
{
    return elicits ? sgi_answer_is_valid(SGI_STR("elicitation/create"), answer)
                   : sgi_json_kind_of(answer) == SGI_JSON_OBJECT;
}

/* ---- the defaults of a question ---- */

static void write_defaults(sgi_jw *w, sgi_json properties)
{
    sgi_json_member member;
    sgi_jw_open(w, '{');
    for (size_t at = 0, i = 0;
         i < SGI_DEFAULTS_MAX && sgi_json_next_member(properties, &at, &member); i++) {
        sgi_json value = sgi_json_kind_of(member.value) == SGI_JSON_OBJECT
                             ? sgi_json_get(member.value, "default")
                             : (sgi_json){0};
        if (!can_be_said(value))
            continue;
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, value);
    }
    sgi_jw_close(w, '}');
}

bool sgi_form_defaults_store(sgi_form_defaults *defaults, const segue_session *session,
                             sgi_str method, sgi_json params)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    sgi_json properties =
        sgi_json_get(sgi_json_get(params, "requestedSchema"), "properties");
    sgi_buf text;
    *defaults = (sgi_form_defaults){0};
    if (!session->options.fill_defaults ||
        sgi_json_kind_of(properties) != SGI_JSON_OBJECT ||
        !sgi_str_eq(method, SGI_STR("elicitation/create")))
        return true;
    sgi_buf_init(&text, mem);
    sgi_jw w = sgi_jw_to(&text);
    write_defaults(&w, properties);
    if (!text.failed && text.len > 2) {
        defaults->text = sgi_text_dup(mem, sgi_buf_str(&text));
        defaults->len = text.len;
    }
    bool kept = !text.failed && (defaults->text || text.len <= 2);
    sgi_buf_free(&text);
    return kept;
}

void sgi_form_defaults_free(sgi_form_defaults *defaults, const sgi_mem *mem)
{
    if (defaults->text)
        sgi_free(mem, defaults->text, defaults->len + 1);
    *defaults = (sgi_form_defaults){0};
}

/* ---- the answer to a question ---- */

/* Returns the member's key as JSON text, with the quotes around it. */
static sgi_json quoted(const sgi_json_member *member)
{
    return (sgi_json){member->key.p - 1, member->key.n + 2};
}

static bool has_member(sgi_json object, sgi_str name)
{
    sgi_json_member member;
    for (size_t at = 0; object.n && sgi_json_next_member(object, &at, &member);)
        if (sgi_json_string_is(quoted(&member), name))
            return true;
    return false;
}

/* Writes the content of the answer: the members of `given`, then the defaults of the
 * fields that `given` lacks. given: the content from the application; may be empty. */
static void write_content(sgi_jw *w, const sgi_form_defaults *defaults, sgi_json given)
{
    sgi_json_member member;
    sgi_buf name;
    sgi_buf_init(&name, w->buf->mem);
    sgi_jw_open(w, '{');
    sgi_jw_copy_members(w, given, NULL);
    for (size_t at = 0;
         sgi_json_next_member((sgi_json){defaults->text, defaults->len}, &at, &member);) {
        sgi_buf_truncate(&name, 0);
        sgi_json_decode(quoted(&member), &name);
        if (has_member(given, name.len ? sgi_buf_str(&name) : SGI_STR("")))
            continue;
        sgi_jw_copy_member(w, &member);
    }
    sgi_jw_close(w, '}');
    w->buf->failed |= name.failed;
    sgi_buf_free(&name);
}

static void write_answer(sgi_jw *w, const sgi_form_defaults *defaults, sgi_json answer)
{
    sgi_json_member member;
    bool has_content = false;
    sgi_jw_open(w, '{');
    for (size_t at = 0; sgi_json_next_member(answer, &at, &member);) {
        bool is_content = sgi_json_key_is(&member, "content");
        sgi_jw_key_json(w, member.key);
        if (is_content)
            write_content(w, defaults, member.value);
        else
            sgi_jw_raw(w, member.value);
        has_content |= is_content;
    }
    if (!has_content) {
        sgi_jw_key(w, "content");
        write_content(w, defaults, (sgi_json){0});
    }
    sgi_jw_close(w, '}');
}

/* True when the answer accepts the form, so that missing fields get their defaults. An
 * answer that declines the form, or a value that is not an answer, gets no defaults. */
static bool may_lack(sgi_json answer)
{
    if (sgi_json_kind_of(answer) != SGI_JSON_OBJECT)
        return false;
    sgi_json content = sgi_json_get(answer, "content");
    return sgi_json_string_is(sgi_json_get(answer, "action"), SGI_STR("accept")) &&
           (!content.n || sgi_json_kind_of(content) == SGI_JSON_OBJECT);
}

char *sgi_form_defaults_fill_answer(const sgi_form_defaults *defaults, const sgi_mem *mem,
                                    sgi_json answer, size_t *len)
{
    sgi_buf text;
    *len = answer.n;
    if (!defaults->text || !may_lack(answer))
        return sgi_text_dup(mem, answer);
    sgi_buf_init(&text, mem);
    sgi_jw w = sgi_jw_to(&text);
    write_answer(&w, defaults, answer);
    char *filled = text.failed ? NULL : sgi_text_dup(mem, sgi_buf_str(&text));
    *len = text.len;
    sgi_buf_free(&text);
    return filled;
}

/* ---- the form of a question ---- */

bool sgi_question_form_store(sgi_question_form *form, const sgi_mem *mem, sgi_str method,
                             sgi_json params)
{
    sgi_json kept = params.n ? params : SGI_STR("{}");
    *form = (sgi_question_form){0};
    if (!sgi_str_eq(method, SGI_STR("elicitation/create")))
        return true;
    form->text = sgi_text_dup(mem, kept);
    form->len = kept.n;
    return form->text != NULL;
}

void sgi_question_form_free(sgi_question_form *form, const sgi_mem *mem)
{
    if (form->text)
        sgi_free(mem, form->text, form->len + 1);
    *form = (sgi_question_form){0};
}

segue_status sgi_question_form_take_answer(const sgi_question_form *form,
                                           const sgi_form_defaults *defaults,
                                           const sgi_mem *mem, sgi_json answer,
                                           char **out, size_t *len)
{
    sgi_json params = {form->text, form->len};
    if (!sgi_answer_is_well_formed(form->text != NULL, answer))
        return SEGUE_E_INVALID;
    char *filled = sgi_form_defaults_fill_answer(defaults, mem, answer, len);
    if (!filled)
        return SEGUE_E_NOMEM;
    if (form->text && !sgi_answer_fits_form(sgi_json_get(params, "requestedSchema"),
                                            (sgi_json){filled, *len}, mem)) {
        sgi_free(mem, filled, *len + 1);
        return SEGUE_E_INVALID;
    }
    *out = filled;
    return SEGUE_OK;
}
