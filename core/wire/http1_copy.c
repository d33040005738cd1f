#include "wire/http1_copy.h"

/* The bytes of a head are followed by one more byte, for the NUL of a text at the end. */
size_t sgi_http1_copy_size(const sgi_http1_head *head)
{
    return sizeof(sgi_http1_copy) + head->field_count * sizeof *head->fields +
           head->text.len + 1;
}

void sgi_http1_copy_fill(sgi_http1_copy *copy, const sgi_http1_head *head)
{
    copy->count = head->field_count;
    copy->size = sgi_http1_copy_size(head);
    copy->is_cut = false;
    if (copy->count)
        memcpy(copy->fields, head->fields, copy->count * sizeof *copy->fields);
    memcpy(copy->fields + copy->count, head->text.p, head->text.len);
}

static void lower(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] | 0x20);
}

static char *text_of(sgi_http1_copy *copy)
{
    return (char *)(copy->fields + copy->count);
}

/* Ends all texts with a NUL, which overwrites what stands between two texts of a head. */
static void cut_all(sgi_http1_copy *copy)
{
    char *text = text_of(copy);
    for (size_t i = 0; i < copy->count; i++) {
        const sgi_http1_field *field = &copy->fields[i];
        lower(text + field->name_at, field->name_len);
        text[field->name_at + field->name_len] = 0;
        text[field->value_at + field->value_len] = 0;
    }
    copy->is_cut = true;
}

bool sgi_http1_copy_header_at(sgi_http1_copy *copy, size_t i, sgi_str *name,
                              sgi_str *value)
{
    if (i >= copy->count)
        return false;
    if (!copy->is_cut)
        cut_all(copy);
    const sgi_http1_field *field = &copy->fields[i];
    *name = (sgi_str){text_of(copy) + field->name_at, field->name_len};
    *value = (sgi_str){text_of(copy) + field->value_at, field->value_len};
    return true;
}
