#include "engine/server/inputs.h"

#include "engine/server/served.h"

#include <stdio.h>

static const struct {
    const char *method;
    /* name of the capability that a client must declare before it gets such a question */
    const char *name;
    uint32_t cap;
} askable[] = {
    {"elicitation/create", "elicitation", SGI_CAP_ELICITATION},
    {"sampling/createMessage", "sampling", SGI_CAP_SAMPLING},
    {"roots/list", "roots", SGI_CAP_ROOTS},
};

/* Follows the rules of 2025-11-25 client/elicitation, "Capabilities", and
 * client/sampling, "Tools in Sampling", for the capabilities that a question requires. */
uint32_t sgi_question_required_caps(const char *method, sgi_json params)
{
    uint32_t needs = SGI_CAP_NOBODY;
    for (size_t i = 0; i < sizeof askable / sizeof *askable; i++)
        if (!strcmp(askable[i].method, method))
            needs = askable[i].cap;
    if (needs == SGI_CAP_ELICITATION &&
        sgi_json_string_is(sgi_json_get(params, "mode"), SGI_STR("url")))
        return SGI_CAP_ELICITATION_URL;
    if (needs == SGI_CAP_SAMPLING &&
        (sgi_json_get(params, "tools").n > 0 || sgi_json_get(params, "toolChoice").n > 0))
        needs |= SGI_CAP_SAMPLING_TOOLS;
    return needs;
}

void sgi_question_write_missing_caps(const char *method, char *data, size_t size)
{
    for (size_t i = 0; i < sizeof askable / sizeof *askable; i++)
        if (!strcmp(askable[i].method, method))
            snprintf(data, size, "{\"requiredCapabilities\":{\"%s\":{}}}",
                     askable[i].name);
}

void sgi_question_write_request(sgi_jw *w, const sgi_op_question *input)
{
    sgi_jw_key(w, input->key);
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "method", sgi_str_of(input->method));
    sgi_jw_member_raw(w, "params", (sgi_str){input->params, input->params_len});
    sgi_jw_close(w, '}');
}
