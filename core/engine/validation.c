/* The library contains no validator. No C library of Debian 12 knows JSON Schema 2020-12
 * (wjelement stops at draft 4, others are in C++), and a validator that ignores unknown
 * keywords would accept wrong values. So the application supplies a validator that it
 * trusts. A value that cannot be checked counts as wrong, because a schema that is not
 * understood must not count as permissive (2026-07-28 basic, "$ref Resolution").
 *
 * The reason of a refusal is sent to the peer, so the reason is cut to one line of
 * UTF-8. */
#include "engine/validation.h"

#include <stdio.h>

static void tidy(char *reason, const char *otherwise)
{
    size_t at = 0;
    reason[SGI_REASON_SIZE - 1] = 0;
    if (!sgi_utf8_valid(sgi_str_of(reason), &at))
        /* snprintf can cut the text in the middle of a character; the incomplete
         * character is removed */
        reason[at] = 0;
    for (at = 0; reason[at] && reason[at] != '\r' && reason[at] != '\n';)
        at++;
    reason[at] = 0;
    if (!*reason)
        snprintf(reason, SGI_REASON_SIZE, "%s", otherwise);
}

segue_status sgi_validate(sgi_engine *engine, sgi_validation *validation)
{
    sgi_json schema = validation->schema;
    sgi_json value = validation->value;
    memset(validation->reason, 0, sizeof validation->reason);
    sgi_user_code_begin(engine);
    segue_status status = validation->fn(
        validation->user, validation->tool, validation->what, schema.p, schema.n, value.p,
        value.n, validation->reason, sizeof validation->reason);
    sgi_user_code_end(engine);
    bool is_told = status == SEGUE_OK || status == SEGUE_E_INVALID;
    tidy(validation->reason,
         is_told ? "the value does not fit the schema" : "the schema cannot be checked");
    return is_told ? status : SEGUE_E_UNSUPPORTED;
}
