#include "wire/log_level.h"

static const char *const level_names[SGI_LOG_LEVELS] = {
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};

int32_t sgi_log_level_parse(sgi_str text)
{
    for (int32_t i = 0; i < SGI_LOG_LEVELS; i++)
        if (sgi_str_eq(text, sgi_str_of(level_names[i])))
            return i;
    return -1;
}

const char *sgi_log_level_name(int32_t level)
{
    return level_names[level];
}

int32_t sgi_log_level_parse_json(sgi_json value)
{
    sgi_str text;
    return sgi_json_plain_string(value, &text) ? sgi_log_level_parse(text) : -1;
}
