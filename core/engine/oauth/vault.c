/* Writes and reads the records that the vault keeps after the process has ended. A record
 * is JSON, under one of two keys: the token of an endpoint, or the client id that an
 * authorization server has registered. A record is checked like a server's answer. A
 * record with anything unexpected is ignored. */
#include "engine/oauth/flow_state.h"

#define BEARER SGI_STR("Bearer ")

static void write_key(sgi_flow *flow, const char *kind, sgi_flow_text whose)
{
    /* the key is written into SGI_FT_URL, because the caller may still use
     * SGI_FT_SCRATCH */
    sgi_flow_text_set(flow, SGI_FT_URL, sgi_str_of(kind));
    sgi_buf_add_str(&flow->text[SGI_FT_URL], sgi_flow_text_of(flow, whose));
    sgi_buf_terminate(&flow->text[SGI_FT_URL]);
}

void sgi_flow_set_token_record_key(sgi_flow *flow)
{
    write_key(flow, "token ", SGI_FT_ENDPOINT);
}

void sgi_flow_set_client_record_key(sgi_flow *flow)
{
    write_key(flow, "client ", SGI_FT_ISS);
}

/* ---- the record of the token ---- */

static void put(sgi_jw *w, const sgi_flow *flow, const char *name, sgi_flow_text which)
{
    if (sgi_flow_text_is_set(flow, which))
        sgi_jw_member_string(w, name, sgi_flow_text_of(flow, which));
}

void sgi_flow_write_token_record(sgi_flow *flow)
{
    sgi_str header = sgi_flow_text_of(flow, SGI_FT_HEADER);
    sgi_buf *record = sgi_flow_text_begin(flow, SGI_FT_RECORD);
    if (header.n < BEARER.n)
        return;
    sgi_jw w = sgi_jw_to(record);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "access_token",
                         (sgi_str){header.p + BEARER.n, header.n - BEARER.n});
    put(&w, flow, "refresh_token", SGI_FT_REFRESH);
    put(&w, flow, "scope", SGI_FT_ASKED);
    put(&w, flow, "issuer", SGI_FT_TOKEN_ISSUER);
    put(&w, flow, "client_id", SGI_FT_TOKEN_CLIENT);
    put(&w, flow, "resource_metadata", SGI_FT_METADATA_URL);
    if (flow->renew_ms)
        sgi_jw_member_int(&w, "renew_at", flow->renew_ms);
    sgi_jw_close(&w, '}');
    sgi_buf_terminate(record);
}

/* Reads the token of a record and makes the value of the Authorization header from it.
 * Ignores a token that cannot be sent in a header. */
static bool read_header(sgi_flow *flow, sgi_json object)
{
    sgi_buf *record = sgi_flow_text_begin(flow, SGI_FT_RECORD);
    if (!sgi_flow_read_member(flow, object, "access_token", SGI_FT_SCRATCH) ||
        !sgi_flow_text_is_set(flow, SGI_FT_SCRATCH) ||
        memchr(sgi_flow_text_of(flow, SGI_FT_SCRATCH).p, ' ',
               sgi_flow_text_of(flow, SGI_FT_SCRATCH).n))
        return false;
    sgi_buf_add_str(record, BEARER);
    sgi_buf_add_str(record, sgi_flow_text_of(flow, SGI_FT_SCRATCH));
    return !record->failed &&
           !sgi_str_eq(sgi_buf_str(record), sgi_flow_text_of(flow, SGI_FT_HEADER));
}

bool sgi_flow_read_token_record(sgi_flow *flow, sgi_str text)
{
    sgi_json object;
    int64_t renew_ms = 0;
    if (!text.n || !sgi_flow_parse_object(flow, text, &object) ||
        !read_header(flow, object))
        return false;
    sgi_flow_drop_token(flow);
    sgi_flow_text_set(flow, SGI_FT_HEADER, sgi_flow_text_of(flow, SGI_FT_RECORD));
    if (!sgi_flow_read_member(flow, object, "refresh_token", SGI_FT_REFRESH) ||
        !sgi_flow_read_member(flow, object, "scope", SGI_FT_ASKED) ||
        !sgi_flow_read_member(flow, object, "issuer", SGI_FT_TOKEN_ISSUER) ||
        !sgi_flow_read_member(flow, object, "client_id", SGI_FT_TOKEN_CLIENT)) {
        sgi_flow_drop_token(flow);
        return false;
    }
    if (!sgi_flow_text_is_set(flow, SGI_FT_METADATA_URL) &&
        !sgi_flow_read_member(flow, object, "resource_metadata", SGI_FT_METADATA_URL))
        sgi_flow_text_clear(flow, SGI_FT_METADATA_URL);
    if (sgi_json_read_int(sgi_json_get(object, "renew_at"), &renew_ms) && renew_ms > 0)
        flow->renew_ms = renew_ms;
    flow->serial++;
    flow->renewed_in_vain = false;
    return true;
}

/* ---- the record of the client ---- */

void sgi_flow_write_client_record(sgi_flow *flow)
{
    sgi_buf *record = sgi_flow_text_begin(flow, SGI_FT_RECORD);
    sgi_jw w = sgi_jw_to(record);
    sgi_jw_open(&w, '{');
    put(&w, flow, "issuer", SGI_FT_CLIENT_ISSUER);
    put(&w, flow, "client_id", SGI_FT_CLIENT_ID);
    put(&w, flow, "client_secret", SGI_FT_SECRET);
    put(&w, flow, "redirect_uri", SGI_FT_SET_REDIRECT);
    if (flow->method)
        sgi_jw_member_string(&w, "token_endpoint_auth_method",
                             sgi_str_of(sgi_flow_auth_method_name(flow->method)));
    if (flow->secret_ends)
        sgi_jw_member_int(&w, "client_secret_expires_at", flow->secret_ends);
    sgi_jw_close(&w, '}');
    sgi_buf_terminate(record);
}

/* Reads the client id of a record. Ignores a client id that was registered for another
 * redirect URI. */
bool sgi_flow_read_client_record(sgi_flow *flow, sgi_str text)
{
    sgi_json object;
    sgi_flow_text_clear(flow, SGI_FT_CLIENT_ID);
    flow->secret_ends = 0;
    if (!text.n || !sgi_flow_parse_object(flow, text, &object) ||
        !sgi_json_string_is(sgi_json_get(object, "redirect_uri"),
                            sgi_flow_text_of(flow, SGI_FT_SET_REDIRECT)) ||
        !sgi_flow_read_member(flow, object, "client_secret", SGI_FT_SECRET) ||
        !sgi_flow_read_member(flow, object, "issuer", SGI_FT_CLIENT_ISSUER) ||
        !sgi_flow_read_member(flow, object, "token_endpoint_auth_method", SGI_FT_SCRATCH))
        return false;
    flow->method = sgi_flow_auth_method_from_name(sgi_flow_text_of(flow, SGI_FT_SCRATCH));
    sgi_json_read_int(sgi_json_get(object, "client_secret_expires_at"),
                      &flow->secret_ends);
    return sgi_flow_read_member(flow, object, "client_id", SGI_FT_CLIENT_ID) &&
           sgi_flow_text_is_set(flow, SGI_FT_CLIENT_ID);
}
