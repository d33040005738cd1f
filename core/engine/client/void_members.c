#include "engine/client/void_members.h"

#include "engine/response_modes.h"
#include "wire/json_copy.h"

static const char *const void_names[] = {SGI_REPLACE, SGI_SEGMENTS, NULL};

bool sgi_meta_reports_void_segments(sgi_json meta)
{
    for (const char *const *name = void_names; *name; name++)
        if (sgi_json_get(meta, *name).n)
            return true;
    return false;
}

/* Writes _meta without the members about void segments. Writes nothing when no other
 * member is left. */
static void write_meta(sgi_jw *w, sgi_json meta)
{
    sgi_json_member member;
    bool is_open = false;
    for (size_t at = 0; sgi_json_next_member(meta, &at, &member);) {
        if (sgi_json_key_is_one_of(&member, void_names))
            continue;
        if (!is_open) {
            sgi_jw_key(w, "_meta");
            sgi_jw_open(w, '{');
        }
        is_open = true;
        sgi_jw_copy_member(w, &member);
    }
    if (is_open)
        sgi_jw_close(w, '}');
}

void sgi_object_write_without_void_report(sgi_json object, const char *const *names,
                                          sgi_buf *out)
{
    sgi_json_member member;
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    for (size_t at = 0; sgi_json_next_member(object, &at, &member);) {
        if (sgi_json_key_is_one_of(&member, names))
            continue;
        if (sgi_json_key_is(&member, "_meta") &&
            sgi_meta_reports_void_segments(member.value))
            write_meta(&w, member.value);
        else
            sgi_jw_copy_member(&w, &member);
    }
    sgi_jw_close(&w, '}');
}

bool sgi_result_write_without_void_report(sgi_json result, sgi_buf *out)
{
    static const char *const names[] = {NULL};
    if (!sgi_meta_reports_void_segments(sgi_json_get(result, "_meta")))
        return false;
    sgi_object_write_without_void_report(result, names, out);
    return true;
}
