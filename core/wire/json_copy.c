#include "wire/json_copy.h"

bool sgi_json_key_is_one_of(const sgi_json_member *member, const char *const *names)
{
    for (; names && *names; names++)
        if (sgi_json_key_is(member, *names))
            return true;
    return false;
}

void sgi_jw_copy_member(sgi_jw *w, const sgi_json_member *member)
{
    sgi_jw_key_json(w, member->key);
    sgi_jw_raw(w, member->value);
}

bool sgi_jw_copy_members(sgi_jw *w, sgi_json object, const char *const *except)
{
    sgi_json_member member;
    bool any = false;
    for (size_t at = 0; sgi_json_next_member(object, &at, &member);) {
        if (sgi_json_key_is_one_of(&member, except))
            continue;
        any = true;
        sgi_jw_copy_member(w, &member);
    }
    return any;
}
