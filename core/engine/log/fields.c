#include "engine/log/fields.h"
#include "wire/json_copy.h"

/* number of bytes around the name and the value of a field: two quotes, a colon, a
 * comma */
#define AROUND 4
#define BRACES 1

typedef enum way { REPLACE, GO_ON } way;

void sgi_fields_init(sgi_fields *fields, const sgi_env *env)
{
    *fields = (sgi_fields){.env = env, .max = SGI_FIELDS_MAX};
    sgi_buf_init(&fields->text, env->mem);
    fields->by_name.mem = env->mem;
    TAILQ_INIT(&fields->all);
}

static void free_nested(sgi_fields *fields, sgi_field *field)
{
    if (!field->nested)
        return;
    sgi_fields_clear(field->nested);
    sgi_free(fields->env->mem, field->nested, sizeof *field->nested);
    field->nested = NULL;
}

static void free_field(sgi_fields *fields, sgi_field *field)
{
    TAILQ_REMOVE(&fields->all, field, link);
    free_nested(fields, field);
    sgi_buf_free(&field->text);
    sgi_free(fields->env->mem, field, field->size);
}

void sgi_fields_clear(sgi_fields *fields)
{
    sgi_field *field;
    while ((field = TAILQ_FIRST(&fields->all)))
        free_field(fields, field);
    sgi_map_free(&fields->by_name);
    sgi_buf_free(&fields->text);
    size_t max = fields->max;
    sgi_fields_init(fields, fields->env);
    fields->max = max;
}

static size_t size_of(const sgi_field *field)
{
    return field->nested ? field->nested->bytes : field->text.len + field->is_list;
}

/* ---- one field ---- */

static sgi_json quoted(const sgi_json_member *member)
{
    return (sgi_json){member->key.p - 1, member->key.n + 2};
}

/* Makes an empty field. Returns NULL and sets fields->failed when out of memory. Returns
 * NULL and sets fields->full when there are too many fields. */
static sgi_field *make(sgi_fields *fields, const sgi_json_member *member, sgi_str name)
{
    size_t size = sizeof(sgi_field) + member->key.n + name.n;
    if (fields->by_name.count >= fields->max) {
        fields->full = true;
        return NULL;
    }
    sgi_field *field = sgi_zalloc(fields->env->mem, size);
    if (!field) {
        fields->failed = true;
        return NULL;
    }
    sgi_buf_init(&field->text, fields->env->mem);
    field->size = size;
    field->name_len = member->key.n;
    memcpy(field->name, member->key.p, member->key.n);
    char *decoded = field->name + member->key.n;
    if (name.n)
        memcpy(decoded, name.p, name.n);
    sgi_map_put(&fields->by_name, &field->node, (sgi_str){decoded, name.n});
    TAILQ_INSERT_TAIL(&fields->all, field, link);
    fields->bytes += member->key.n + AROUND;
    return field;
}

static void drop(sgi_fields *fields, sgi_field *field)
{
    fields->bytes -= field->name_len + AROUND + size_of(field);
    sgi_map_remove(&fields->by_name, &field->node);
    free_field(fields, field);
}

static bool is_spelt(const sgi_field *field, sgi_str name)
{
    return sgi_str_eq((sgi_str){field->name, field->name_len}, name);
}

/* Finds or makes the field of a member, and moves the field to the end of the list. If
 * the value is replaced, the name gets the spelling of the new member. */
static sgi_field *field_of(sgi_fields *fields, const sgi_json_member *member, way how)
{
    sgi_buf decoded;
    sgi_str name = member->key;
    sgi_buf_init(&decoded, fields->env->mem);
    if (member->escaped) {
        sgi_json_decode(quoted(member), &decoded);
        name = sgi_buf_str(&decoded);
    }
    fields->failed |= decoded.failed;
    sgi_map_node *node = decoded.failed ? NULL : sgi_map_find(&fields->by_name, name);
    sgi_field *field = node ? SGI_OWNER(node, sgi_field, node) : NULL;
    if (field && how == REPLACE && !is_spelt(field, member->key)) {
        drop(fields, field);
        field = NULL;
    }
    if (field) {
        TAILQ_REMOVE(&fields->all, field, link);
        TAILQ_INSERT_TAIL(&fields->all, field, link);
    } else if (!decoded.failed) {
        field = make(fields, member, name);
    }
    sgi_buf_free(&decoded);
    return field;
}

/* Sets the value of the field to a text. The memory of the field stays close to the size
 * of the text. */
static void set_text(sgi_fields *fields, sgi_field *field, sgi_json value)
{
    sgi_buf *text = &field->text;
    free_nested(fields, field);
    field->is_list = false;
    if (text->cap < value.n || text->cap > 2 * value.n + 256) {
        sgi_buf_free(text);
        text->p = sgi_alloc(fields->env->mem, value.n);
        text->cap = text->p ? value.n : 0;
    }
    fields->failed |= !text->p;
    text->len = 0;
    if (text->p)
        sgi_buf_add_str(text, value);
}

/* Turns the value of the field, a JSON object, from text into nested fields. Returns
 * false when out of memory. */
static bool make_nested(sgi_fields *fields, sgi_field *field)
{
    if (field->nested)
        return true;
    sgi_fields *nested = sgi_alloc(fields->env->mem, sizeof *nested);
    if (!nested) {
        fields->failed = true;
        return false;
    }
    sgi_fields_init(nested, fields->env);
    nested->max = fields->max;
    sgi_fields_add_object(nested, sgi_buf_str(&field->text));
    sgi_buf_free(&field->text);
    field->nested = nested;
    return true;
}

static void add_items(sgi_buf *text, sgi_json list)
{
    sgi_json item;
    for (size_t at = 0; sgi_json_next_item(list, &at, &item);) {
        if (text->len > 1)
            sgi_buf_add_char(text, ',');
        sgi_buf_add_str(text, item);
    }
}

static void open_list(sgi_fields *fields, sgi_field *field)
{
    sgi_buf open;
    if (field->is_list)
        return;
    sgi_buf_init(&open, fields->env->mem);
    sgi_buf_add_char(&open, '[');
    add_items(&open, sgi_buf_str(&field->text));
    sgi_buf_free(&field->text);
    field->text = open;
    field->is_list = true;
}

static sgi_json_kind kind_of(const sgi_field *field)
{
    return field->nested ? SGI_JSON_OBJECT : sgi_json_kind_of(sgi_buf_str(&field->text));
}

static void set(sgi_fields *fields, sgi_field *field, sgi_json value, way how)
{
    size_t before = size_of(field);
    sgi_json_kind kind = sgi_json_kind_of(value);
    bool goes_on = how == GO_ON && kind_of(field) == kind;
    if (goes_on && kind == SGI_JSON_OBJECT) {
        if (make_nested(fields, field)) {
            sgi_fields_add_object(field->nested, value);
            fields->full |= field->nested->full;
            fields->failed |= field->nested->failed;
        }
    } else if (goes_on && kind == SGI_JSON_ARRAY) {
        open_list(fields, field);
        add_items(&field->text, value);
        fields->failed |= field->text.failed;
    } else {
        set_text(fields, field, value);
    }
    fields->bytes = fields->bytes - before + size_of(field);
}

/* ---- all fields ---- */

static void begin_table(sgi_fields *fields)
{
    sgi_json_member member;
    if (fields->is_table)
        return;
    sgi_buf text = fields->text;
    sgi_buf_init(&fields->text, fields->env->mem);
    sgi_map_init(&fields->by_name, fields->env);
    fields->is_table = true;
    fields->bytes = BRACES;
    for (size_t at = 0;
         text.len && sgi_json_next_member(sgi_buf_str(&text), &at, &member);)
        sgi_fields_add_member(fields, &member, member.value);
    sgi_buf_free(&text);
}

static void put(sgi_fields *fields, const sgi_json_member *member, sgi_json value,
                way how)
{
    if (fields->failed)
        /* memory ran out before, so fields are already missing, and no more fields are
         * added */
        return;
    begin_table(fields);
    sgi_field *field = field_of(fields, member, how);
    if (field)
        set(fields, field, value, how);
}

void sgi_fields_add_member(sgi_fields *fields, const sgi_json_member *member,
                           sgi_json value)
{
    bool merges =
        sgi_json_key_is(member, "_meta") && sgi_json_kind_of(value) == SGI_JSON_OBJECT;
    put(fields, member, value, merges ? GO_ON : REPLACE);
}

void sgi_fields_continue_member(sgi_fields *fields, const sgi_json_member *member,
                                sgi_json value)
{
    put(fields, member, value, GO_ON);
}

void sgi_fields_add_object(sgi_fields *fields, sgi_json object)
{
    sgi_json_member member;
    if (fields->failed)
        return;
    if (!fields->bytes) {
        sgi_buf_add_str(&fields->text, object);
        fields->failed = fields->text.failed;
        fields->bytes = fields->text.len;
        return;
    }
    begin_table(fields);
    for (size_t at = 0; sgi_json_next_member(object, &at, &member);)
        sgi_fields_add_member(fields, &member, member.value);
}

/* ---- reading and writing ---- */

bool sgi_fields_next(const sgi_fields *fields, sgi_fields_walk *walk)
{
    if (!fields->is_table)
        return fields->text.len &&
               sgi_json_next_member(sgi_buf_str(&fields->text), &walk->at, &walk->member);
    walk->field = walk->begun ? TAILQ_NEXT(walk->field, link) : TAILQ_FIRST(&fields->all);
    walk->begun = true;
    return walk->field != NULL;
}

bool sgi_fields_has(const sgi_fields *fields, const char *name)
{
    return fields->is_table ? sgi_map_find(&fields->by_name, sgi_str_of(name)) != NULL
                            : sgi_json_get(sgi_buf_str(&fields->text), name).n > 0;
}

bool sgi_fields_current_is(const sgi_fields_walk *walk, const char *name)
{
    return walk->field ? sgi_str_eq(walk->field->node.key, sgi_str_of(name))
                       : sgi_json_key_is(&walk->member, name);
}

sgi_json_kind sgi_fields_current_kind(const sgi_fields_walk *walk)
{
    return walk->field ? kind_of(walk->field) : sgi_json_kind_of(walk->member.value);
}

static void write_all(const sgi_fields *fields, sgi_jw *w)
{
    sgi_fields_walk walk = {0};
    while (sgi_fields_next(fields, &walk))
        sgi_fields_current_write(&walk, w);
}

void sgi_fields_current_write(const sgi_fields_walk *walk, sgi_jw *w)
{
    const sgi_field *field = walk->field;
    if (!field) {
        sgi_jw_copy_member(w, &walk->member);
        return;
    }
    sgi_jw_key_json(w, (sgi_str){field->name, field->name_len});
    if (field->nested) {
        sgi_jw_open(w, '{');
        write_all(field->nested, w);
        sgi_jw_close(w, '}');
        return;
    }
    sgi_jw_raw(w, sgi_buf_str(&field->text));
    if (field->is_list)
        sgi_buf_add_char(w->buf, ']');
}

void sgi_fields_current_write_members(const sgi_fields_walk *walk, sgi_jw *w)
{
    sgi_json value = walk->field ? sgi_buf_str(&walk->field->text) : walk->member.value;
    if (walk->field && walk->field->nested) {
        write_all(walk->field->nested, w);
        return;
    }
    sgi_jw_copy_members(w, value, NULL);
}
