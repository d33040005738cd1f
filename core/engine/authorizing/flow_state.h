/* The insides of a flow, for its files. */
#ifndef SGI_FLOW_STATE_H
#define SGI_FLOW_STATE_H

#include "engine/authorizing/flow.h"
#include "wire/form.h"
#include "wire/scopes.h"
#include "wire/url.h"

/* All its texts, in one table, so that none is forgotten when memory runs out. */
typedef enum sgi_flow_text {
    /* settings */
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
    /* the challenge that began it */
    SGI_FT_METADATA_URL, /* resource_metadata; kept for the next time */
    SGI_FT_WANTED,       /* scope */
    /* the resource */
    SGI_FT_RESOURCE, /* what tokens are for */
    SGI_FT_OFFERED,  /* its scopes_supported */
    /* the authorization server */
    SGI_FT_ISSUER, /* as the resource names it */
    SGI_FT_KNOWN,  /* whose metadata the following are; empty = none are known */
    SGI_FT_ISS,    /* as it names itself */
    SGI_FT_AUTHORIZE,
    SGI_FT_TOKEN_URL,
    SGI_FT_REGISTER,
    /* the client, as that server knows it */
    SGI_FT_CLIENT_ID,
    SGI_FT_SECRET,
    SGI_FT_CLIENT_ISSUER,
    /* the browser */
    SGI_FT_VERIFIER,
    SGI_FT_STATE,
    SGI_FT_CODE,
    /* the token */
    SGI_FT_HEADER, /* Bearer and the token */
    SGI_FT_REFRESH,
    SGI_FT_ASKED, /* scopes: of the last authorization */
    SGI_FT_TOKEN_ISSUER,
    SGI_FT_TOKEN_CLIENT,
    /* the step */
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
    SGI_FLOW_TO_BEGIN = 0, /* what was kept */
    SGI_FLOW_TO_RENEW,     /* the token is about to expire; no user is asked */
    SGI_FLOW_TO_ENTER,     /* 401 */
    SGI_FLOW_TO_STEP_UP    /* 403 */
} sgi_flow_purpose;

/* How a client shows who it is (RFC 7591, token_endpoint_auth_method). */
enum { SGI_AUTH_NONE = 1, SGI_AUTH_BASIC = 2, SGI_AUTH_POST = 4, SGI_AUTH_JWT = 8 };

struct sgi_flow {
    sgi_engine *engine;
    TAILQ_ENTRY(sgi_flow) link; /* of the engine's, while the browser is out */
    bool listed;
    void (*moved)(void *user);
    void *moved_user;
    sgi_buf text[SGI_FLOW_TEXTS];
    int32_t grant;
    int64_t patience_ms;
    bool has_load, has_save, no_registration, allows_private;
    sgi_flow_stage stage;
    sgi_flow_purpose purpose;
    size_t candidate;  /* which of several places is asked */
    int32_t redirects; /* followed in a row */
    bool has_resource; /* its metadata was found */
    bool refreshing;   /* the grant under way */
    bool refresh_tried;
    bool registered_anew;
    bool code_is_kept; /* the code is that of an earlier flow, which was put off */
    bool starved;      /* memory ran out for a text */
    segue_status status;
    char why[SGI_FLOW_WHY_SIZE];
    /* of the authorization server */
    uint32_t methods;     /* its token endpoint knows; 0 = it does not say */
    bool knows_documents; /* client ids may be URLs */
    bool names_itself;    /* iss is in its answers */
    bool offline;         /* it has the scope offline_access */
    /* of the client */
    uint32_t method;     /* it was registered with; 0 = unknown */
    bool is_dynamic;     /* it registered itself */
    int64_t secret_ends; /* s; 0 = never */
    /* of the token */
    uint64_t serial;  /* one more with each token; 0 = none yet */
    int64_t renew_ms; /* wall; 0 = unknown */
    bool looked;      /* what was kept is known */
    bool is_granted;  /* it came from a grant of this flow, and not by a refresh */
    bool accepted;    /* the server has let it pass */
    bool renewed_in_vain;
    uint64_t vain; /* the last one that was refused although it was just granted */
};

static inline sgi_str sgi_ft(const sgi_flow *flow, sgi_flow_text which)
{
    return sgi_buf_str(&flow->text[which]);
}

static inline bool sgi_ft_has(const sgi_flow *flow, sgi_flow_text which)
{
    return flow->text[which].len > 0;
}

/* ---- flow.c ---- */

/* Empties a text to be written anew; that it had failed is noted. */
sgi_buf *sgi_ft_begin(sgi_flow *flow, sgi_flow_text which);
/* Replaces a text; the new one is no view of it. */
void sgi_ft_set(sgi_flow *flow, sgi_flow_text which, sgi_str value);
void sgi_ft_clear(sgi_flow *flow, sgi_flow_text which);
/* Its end, with a token or without one. */
void sgi_flow_done(sgi_flow *flow);
void sgi_flow_fail(sgi_flow *flow, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* It ends without a token now; a later try may get one. */
void sgi_flow_put_off(sgi_flow *flow, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* True when some text could not be kept: the flow has failed then. */
bool sgi_flow_is_out_of_memory(sgi_flow *flow);
/* The step is an exchange, whose URL and body stand in the table. Fails where the URL is
 * one that nothing may be sent to. */
void sgi_flow_ask(sgi_flow *flow, sgi_flow_stage stage);
/* https, or this machine where the endpoint is on it, too. */
bool sgi_flow_may_use(const sgi_flow *flow, sgi_str url);

/* A text as it may stand in a message for a person: at most so much of it, without what
 * is no plain ASCII. */
#define SGI_FLOW_SHOWN 120
const char *sgi_flow_show(sgi_str text, char shown[SGI_FLOW_SHOWN + 1]);

/* JSON that is an object; false for anything else. */
bool sgi_flow_object(sgi_flow *flow, sgi_str body, sgi_json *object);
/* A member that is a string of visible text replaces a text of the table, what is absent
 * or null empties it; false when it is something else. */
bool sgi_flow_member(sgi_flow *flow, sgi_json object, const char *name,
                     sgi_flow_text which);
/* The server cannot answer now, whatever it was asked; body: may be empty. */
bool sgi_flow_may_pass(sgi_flow *flow, int32_t status, sgi_str body);
/* Ends the flow by an answer that is an OAuth error, or is none of ours. */
void sgi_flow_refusal(sgi_flow *flow, const char *what, int32_t status, sgi_str body);
bool sgi_flow_error_is(sgi_flow *flow, sgi_str body, const char *code);

/* ---- discovery.c ---- */

void sgi_flow_discover(sgi_flow *flow);
void sgi_flow_take_resource(sgi_flow *flow, int32_t status, sgi_str body);
void sgi_flow_take_server(sgi_flow *flow, int32_t status, sgi_str body);

/* ---- registration.c ---- */

/* Both servers are known: who are we there? */
void sgi_flow_identify(sgi_flow *flow);
void sgi_flow_take_client(sgi_flow *flow, sgi_str text);
void sgi_flow_take_registration(sgi_flow *flow, int32_t status, sgi_str body);
/* What the server calls unknown is given up, and we register anew; false when that was
 * done before, or cannot be. */
bool sgi_flow_forget_client(sgi_flow *flow);
uint32_t sgi_flow_method(sgi_str name);
const char *sgi_flow_method_name(uint32_t method);

/* ---- consent.c ---- */

void sgi_flow_agree(sgi_flow *flow);
void sgi_flow_stop_waiting(sgi_flow *flow);

/* ---- token_endpoint.c ---- */

/* The client is known: by refresh, by the browser, or at once. */
void sgi_flow_obtain(sgi_flow *flow);
void sgi_flow_redeem(sgi_flow *flow);
void sgi_flow_take_token(sgi_flow *flow, int32_t status, sgi_str body);
void sgi_flow_drop_token(sgi_flow *flow);

/* ---- scope_choice.c ---- */

/* Scopes are names with blanks between. Appends those that are not there yet. */
void sgi_flow_add_scopes(sgi_buf *set, sgi_str more);
/* Which to ask for now, into SGI_FT_ASKED. */
void sgi_flow_choose_scopes(sgi_flow *flow);

/* ---- vault.c ---- */

void sgi_flow_key_token(sgi_flow *flow);
void sgi_flow_key_client(sgi_flow *flow);
void sgi_flow_write_token(sgi_flow *flow);
void sgi_flow_write_client(sgi_flow *flow);
/* What cannot be read was never kept. True when it is another than what we have. */
bool sgi_flow_read_token(sgi_flow *flow, sgi_str text);
bool sgi_flow_read_client(sgi_flow *flow, sgi_str text);

#endif
