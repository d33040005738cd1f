/* The state of a flow, shared by the files of engine/oauth. */
#ifndef SGI_FLOW_STATE_H
#define SGI_FLOW_STATE_H

#include "engine/engine.h"
#include "engine/oauth/flow.h"
#include "wire/form.h"
#include "wire/scopes.h"
#include "wire/url.h"

/* The texts of a flow. They are in one array, so that one loop can find a failed
 * allocation. */
typedef enum sgi_flow_text {
    /* The application sets the following texts. */
    SGI_FT_ENDPOINT = 0,
    SGI_FT_SET_CLIENT_ID,
    SGI_FT_SET_SECRET,
    SGI_FT_SET_KEY,
    SGI_FT_SET_ISSUER,
    SGI_FT_SET_METADATA_URL,
    SGI_FT_SET_NAME,
    SGI_FT_SET_REDIRECT,
    SGI_FT_SET_SCOPE,
    SGI_FT_SET_METHOD,
    /* The following texts come from the challenge that started the flow. */
    /* the URL resource_metadata in the challenge; kept for later flows */
    SGI_FT_METADATA_URL,
    SGI_FT_WANTED, /* the scope that the challenge requires */
    /* The following texts come from the metadata of the resource. */
    SGI_FT_RESOURCE, /* the resource for which tokens are valid */
    SGI_FT_OFFERED,  /* scopes_supported of the resource */
    /* The following texts come from the metadata of the authorization server. */
    SGI_FT_ISSUER, /* the issuer that the resource's metadata names */
    /* the issuer to which SGI_FT_ISS and the three URLs below belong; empty = no metadata
     * is known */
    SGI_FT_KNOWN,
    SGI_FT_ISS, /* the issuer that the authorization server's own metadata names */
    SGI_FT_AUTHORIZE,
    SGI_FT_TOKEN_URL,
    SGI_FT_REGISTER,
    /* The following texts describe the client's registration at the authorization
     * server. */
    SGI_FT_CLIENT_ID,
    SGI_FT_SECRET,
    SGI_FT_CLIENT_ISSUER,
    /* The following texts belong to one visit of the user's browser. */
    SGI_FT_VERIFIER,
    SGI_FT_STATE,
    SGI_FT_CODE,
    /* The following texts are the token and the data of the grant that gave it. */
    SGI_FT_HEADER, /* value of the Authorization header: "Bearer " and the token */
    SGI_FT_REFRESH,
    SGI_FT_ASKED, /* the scopes of the last authorization request */
    SGI_FT_TOKEN_ISSUER,
    SGI_FT_TOKEN_CLIENT,
    /* The following texts belong to the exchange, or the record of the vault, that is
     * under way. */
    SGI_FT_URL,
    SGI_FT_BODY,
    SGI_FT_BASIC,
    SGI_FT_RECORD,
    SGI_FT_SCRATCH,
    SGI_FLOW_TEXTS
} sgi_flow_text;

typedef enum sgi_flow_stage {
    SGI_FLOW_IDLE = 0,
    SGI_FLOW_LOAD_TOKEN,
    SGI_FLOW_RESOURCE,
    SGI_FLOW_SERVER,
    SGI_FLOW_LOAD_CLIENT,
    SGI_FLOW_REGISTER,
    SGI_FLOW_SAVE_CLIENT,
    SGI_FLOW_AGREE,
    SGI_FLOW_VOUCH,
    SGI_FLOW_TOKEN,
    SGI_FLOW_SAVE_TOKEN
} sgi_flow_stage;

typedef enum sgi_flow_purpose {
    /* the flow has no token yet, so it first reads the vault */
    SGI_FLOW_TO_BEGIN = 0,
    /* the token expires soon; the flow gets a new token without asking the user */
    SGI_FLOW_TO_RENEW,
    SGI_FLOW_TO_ENTER, /* the server answered a request with status 401 */
    /* the server answered a request with status 403, because the token lacks scopes */
    SGI_FLOW_TO_STEP_UP
} sgi_flow_purpose;

/* The methods by which a client authenticates at the token endpoint (RFC 7591,
 * token_endpoint_auth_method). */
enum { SGI_AUTH_NONE = 1, SGI_AUTH_BASIC = 2, SGI_AUTH_POST = 4, SGI_AUTH_JWT = 8 };

struct sgi_flow {
    sgi_engine *engine;
    /* link in the engine's list of flows; used while the browser is open */
    TAILQ_ENTRY(sgi_flow) link;
    bool listed;
    void (*moved)(void *user);
    void *moved_user;
    sgi_buf text[SGI_FLOW_TEXTS];
    int32_t grant;
    int64_t patience_ms;
    bool has_load, has_save, no_registration, allows_private;
    sgi_flow_stage stage;
    sgi_flow_purpose purpose;
    size_t candidate;  /* index of the well-known URL that is being tried */
    int32_t redirects; /* number of redirects that were followed in a row */
    bool has_resource; /* true when the resource's metadata was found */
    bool refreshing;   /* true when the request under way is a refresh */
    bool refresh_tried;
    bool registered_anew;
    /* True when an earlier flow received the code and then failed for a temporary reason,
     * so that this flow uses the code. */
    bool code_is_kept;
    bool starved; /* true when memory ran out for one of the texts */
    segue_status status;
    char why[SGI_FLOW_WHY_SIZE];
    /* ---- the authorization server ---- */
    /* set of authentication methods that the token endpoint accepts; 0 = the metadata
     * names no method */
    uint32_t methods;
    /* true when the authorization server accepts client ids that are URLs */
    bool knows_documents;
    /* true when the authorization server puts its issuer (the parameter iss) into its
     * answers */
    bool names_itself;
    bool offline; /* true when the authorization server offers the scope offline_access */
    /* ---- the client ---- */
    /* the authentication method of the client's registration; 0 = not known */
    uint32_t method;
    bool is_dynamic; /* true when the client was registered dynamically */
    /* time at which the client's secret expires, in s since 1970; 0 = never */
    int64_t secret_ends;
    /* ---- the token ---- */
    /* number of the token; each new token gets the next number; 0 = the flow never had a
     * token */
    uint64_t serial;
    /* wall clock time in ms at which the token has to be renewed; 0 = not known */
    int64_t renew_ms;
    bool looked; /* true when the vault was read at least once */
    /* true when a grant in this process gave the token; false when a refresh gave the
     * token or it came from the vault */
    bool is_granted;
    bool accepted; /* true when the server has accepted a request with the token */
    bool renewed_in_vain;
    /* number of the last token that the server refused right after its grant; 0 = no such
     * token */
    uint64_t vain;
};

static inline sgi_str sgi_flow_text_of(const sgi_flow *flow, sgi_flow_text which)
{
    return sgi_buf_str(&flow->text[which]);
}

static inline bool sgi_flow_text_is_set(const sgi_flow *flow, sgi_flow_text which)
{
    return flow->text[which].len > 0;
}

/* ---- flow.c ---- */

/* Changes the stage. The table of allowed changes is in flow.c. */
void sgi_flow_set_stage(sgi_flow *flow, sgi_flow_stage to);
/* Empties a text and returns its buffer, so that the caller can write a new text. If the
 * old text was incomplete because memory ran out, sets `starved`. */
sgi_buf *sgi_flow_text_begin(sgi_flow *flow, sgi_flow_text which);
/* Replaces a text. The new value must not be a view of the same text. */
void sgi_flow_text_set(sgi_flow *flow, sgi_flow_text which, sgi_str value);
void sgi_flow_text_clear(sgi_flow *flow, sgi_flow_text which);
/* These functions end the flow. sgi_flow_finish ends it with or without a token.
 * sgi_flow_fail ends it without a token and means that no later try can succeed. */
void sgi_flow_finish(sgi_flow *flow);
void sgi_flow_fail(sgi_flow *flow, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Ends the flow without a token, because of a temporary failure. A later try may
 * succeed. */
void sgi_flow_fail_temporarily(sgi_flow *flow, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* True when memory ran out for a text. The function has then ended the flow with an
 * error. */
bool sgi_flow_is_out_of_memory(sgi_flow *flow);
/* Begins an HTTP exchange as the next step of the flow. The text SGI_FT_URL is the URL,
 * and SGI_FT_BODY is the body. Ends the flow with an error when the URL is not allowed
 * (sgi_flow_url_is_allowed). */
void sgi_flow_begin_exchange(sgi_flow *flow, sgi_flow_stage stage);
/* True for a URL that the flow may use: a URL with https or, when the endpoint is on this
 * machine, another URL on this machine. */
bool sgi_flow_url_is_allowed(const sgi_flow *flow, sgi_str url);

/* Copies a text for a message: only its visible ASCII characters, at most
 * SGI_FLOW_SHOWN. */
#define SGI_FLOW_SHOWN 120
const char *sgi_flow_printable(sgi_str text, char shown[SGI_FLOW_SHOWN + 1]);

/* Parses a JSON object. Returns false for any other text. */
bool sgi_flow_parse_object(sgi_flow *flow, sgi_str body, sgi_json *object);
/* Stores a string member of a JSON object in the flow's texts. The string may have
 * visible characters only. When the member is missing or null, the text becomes empty.
 * Returns false for any other value. */
bool sgi_flow_read_member(sgi_flow *flow, sgi_json object, const char *name,
                          sgi_flow_text which);
/* True when the response shows a temporary failure of the server. body: the body of the
 * response; may be empty. */
bool sgi_flow_failure_is_temporary(sgi_flow *flow, int32_t status, sgi_str body);
/* Ends the flow because of a response that is an OAuth error or that cannot be used.
 * what: the name of the response in the message. */
void sgi_flow_fail_by_answer(sgi_flow *flow, const char *what, int32_t status,
                             sgi_str body);
bool sgi_flow_error_is(sgi_flow *flow, sgi_str body, const char *code);

/* ---- discovery.c ---- */

void sgi_flow_discover(sgi_flow *flow);
void sgi_flow_take_resource_metadata(sgi_flow *flow, int32_t status, sgi_str body);
void sgi_flow_take_server_metadata(sgi_flow *flow, int32_t status, sgi_str body);

/* ---- registration.c ---- */

/* Chooses the client id. Called when the metadata of the resource and the metadata of the
 * authorization server are known. */
void sgi_flow_choose_client_id(sgi_flow *flow);
void sgi_flow_take_client_record(sgi_flow *flow, sgi_str text);
void sgi_flow_take_registration_answer(sgi_flow *flow, int32_t status, sgi_str body);
/* Drops a client id that the server does not know, and registers the client again.
 * Returns false when this flow has already registered the client, or cannot register
 * it. */
bool sgi_flow_register_client_anew(sgi_flow *flow);
uint32_t sgi_flow_auth_method_from_name(sgi_str name);
const char *sgi_flow_auth_method_name(uint32_t method);

/* ---- consent.c ---- */

void sgi_flow_ask_consent(sgi_flow *flow);
void sgi_flow_stop_waiting_for_browser(sgi_flow *flow);

/* ---- token_endpoint.c ---- */

/* Gets a token: by a refresh, by the browser of the user, or by a request without a user.
 * Called when the client id is known. */
void sgi_flow_obtain_token(sgi_flow *flow);
void sgi_flow_redeem_code(sgi_flow *flow);
void sgi_flow_take_token_answer(sgi_flow *flow, int32_t status, sgi_str body);
void sgi_flow_drop_token(sgi_flow *flow);

/* ---- scope_choice.c ---- */

/* Adds to a set of scopes the scopes of `more` that the set does not have yet. A set of
 * scopes is a text of names with blanks between them. */
void sgi_flow_add_scopes(sgi_buf *set, sgi_str more);
/* Chooses the scopes to request and stores them in SGI_FT_ASKED. */
void sgi_flow_choose_scopes(sgi_flow *flow);

/* ---- vault.c ---- */

void sgi_flow_set_token_record_key(sgi_flow *flow);
void sgi_flow_set_client_record_key(sgi_flow *flow);
void sgi_flow_write_token_record(sgi_flow *flow);
void sgi_flow_write_client_record(sgi_flow *flow);
/* These two functions read a record of the vault, and ignore a record that cannot be
 * read. They return true when the record differs from the flow's own data. */
bool sgi_flow_read_token_record(sgi_flow *flow, sgi_str text);
bool sgi_flow_read_client_record(sgi_flow *flow, sgi_str text);

#endif
