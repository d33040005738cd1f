/* oauth: gets the access token of a client (2026-07-28 basic/authorization), without
 * input and output (sans-IO). A flow belongs to one endpoint. The flow reports what it
 * needs next (an HTTP exchange, the browser, a record of the vault) and receives the
 * outcome. Between its runs the flow holds the token. The files are:
 *
 * flow.c            the life of a flow, and the steps before and after a request
 * flow_settings.c   the options of the application
 * flow_text.c       the table of texts, and reading JSON into this table
 * discovery.c       the metadata of the resource and of its authorization server
 * registration.c    the client id at the authorization server
 * consent.c         PKCE, the authorization URL, the browser's answer
 * token_endpoint.c  the requests to the token endpoint
 * scope_choice.c    sets of scopes, and which scopes are requested
 * vault.c           records that are kept after the process ends, as JSON
 *
 * All functions are called under the engine's lock. The only callback is `moved`. */
#ifndef SGI_FLOW_H
#define SGI_FLOW_H

#include "engine/port.h"

/* The largest body of a response, in bytes. A response with a larger body counts as no
 * answer. */
#define SGI_FLOW_BODY_MAX ((size_t)256 * 1024)
/* SGI_FLOW_OFFERED_MAX: the largest number of entries of scopes_supported that are read.
 * SGI_FLOW_SCOPES_MAX: the largest size in bytes of the requested scopes. Further scopes
 * are ignored. */
#define SGI_FLOW_OFFERED_MAX 1000
#define SGI_FLOW_SCOPES_MAX ((size_t)8 * 1024)
#define SGI_FLOW_WHY_SIZE 320
#define SGI_FLOW_EXCHANGE_MS 30000

typedef struct sgi_flow sgi_flow;

/* Makes a flow. options: the newest form of the struct, with all members; its texts are
 * copied. Returns SEGUE_E_INVALID when the options contradict each other. */
segue_status sgi_flow_new(sgi_engine *engine, const char *endpoint,
                          const segue_oauth_options *options, sgi_flow **out);
void sgi_flow_free(sgi_flow *flow);

/* ---- functions for requests ---- */

typedef enum sgi_flow_verdict {
    /* the request may be sent with the header of sgi_flow_authorization_header */
    SGI_FLOW_GO = 0,
    /* the request waits until sgi_flow_next_need returns SGI_FLOW_NOTHING */
    SGI_FLOW_WAIT,
    /* the client cannot get a token; sgi_flow_failure_text returns the reason */
    SGI_FLOW_NO,
    /* the status is not about authorization, so the flow ignores it */
    SGI_FLOW_OTHER
} sgi_flow_verdict;

/* Says whether a request may be sent now: SGI_FLOW_GO or SGI_FLOW_WAIT. Called before
 * each request. */
sgi_flow_verdict sgi_flow_before_request(sgi_flow *flow);
/* Returns the value of the Authorization header; empty when the flow has no token.
 * serial: receives the number of the token, or 0 when the flow has no token. */
sgi_str sgi_flow_authorization_header(const sgi_flow *flow, uint64_t *serial);
/* Handles an answer with status 401 or 403. serial: the number of the token with which
 * the request was sent. challenge: the value of the header WWW-Authenticate. */
sgi_flow_verdict sgi_flow_on_token_refused(sgi_flow *flow, int32_t status,
                                           sgi_str challenge, uint64_t serial);
/* True when a grant in this process gave the token; false when a refresh gave the token
 * or it came from the vault. */
bool sgi_flow_token_is_from_grant(const sgi_flow *flow);
/* Notes that the server has accepted a request with the token of this number. */
void sgi_flow_on_token_accepted(sgi_flow *flow, uint64_t serial);

/* ---- the needs of the flow ---- */

typedef enum sgi_flow_need {
    SGI_FLOW_NOTHING = 0, /* nothing: no flow is under way */
    /* the caller has to load the record with the key sgi_flow_vault_key */
    SGI_FLOW_LOAD,
    /* the caller has to store the record sgi_flow_vault_record under the key
     * sgi_flow_vault_key */
    SGI_FLOW_SAVE,
    SGI_FLOW_EXCHANGE,
    SGI_FLOW_CONSENT, /* the caller has to open the browser at sgi_flow_consent_url */
    /* the caller has to get an assertion for sgi_flow_issuer and sgi_flow_resource */
    SGI_FLOW_ASSERTION
} sgi_flow_need;

sgi_flow_need sgi_flow_next_need(const sgi_flow *flow);
/* Returns the outcome of a flow that has ended: SEGUE_OK when the flow has a token, else
 * the reason. SEGUE_E_UNAUTHORIZED is final. Every other status is temporary, and another
 * try may succeed; for example, the authorization server could not be reached. */
segue_status sgi_flow_status(const sgi_flow *flow);
const char *sgi_flow_failure_text(const sgi_flow *flow);

/* These functions return texts that are valid until the flow's next step. The texts of
 * key, url and state end with a NUL. */
sgi_str sgi_flow_vault_key(const sgi_flow *flow);
sgi_str sgi_flow_vault_record(const sgi_flow *flow);
void sgi_flow_on_record_loaded(sgi_flow *flow, sgi_str text);
void sgi_flow_on_record_saved(sgi_flow *flow);

sgi_str sgi_flow_issuer(const sgi_flow *flow);
sgi_str sgi_flow_resource(const sgi_flow *flow);
/* Gives an assertion to the flow. An empty text means that the application has none. */
void sgi_flow_on_assertion(sgi_flow *flow, sgi_str assertion);

typedef struct sgi_flow_exchange {
    const char *url;
    bool post;
    bool at_endpoint; /* true when the URL has the origin of the MCP endpoint */
    /* True when another server has given the host of this URL. The transport must then
     * connect only to a public address. */
    bool public_only;
    /* true when the URL has the host of the MCP endpoint; the port may differ */
    bool same_host;
    bool is_local; /* true when the MCP endpoint is on this machine */
    /* The next three texts are values of request headers. A header with an empty text is
     * not sent. */
    sgi_str authorization;
    sgi_str type;
    sgi_str body;
} sgi_flow_exchange;

void sgi_flow_get_exchange(const sgi_flow *flow, sgi_flow_exchange *exchange);
void sgi_flow_on_answer(sgi_flow *flow, int32_t status, sgi_str body);
void sgi_flow_on_http_redirect(sgi_flow *flow, sgi_str location);
/* Reports that the exchange brought no answer, or an answer larger than
 * SGI_FLOW_BODY_MAX. why: the reason in one line. passes: the failure is temporary, and a
 * later try may succeed. */
void sgi_flow_on_no_answer(sgi_flow *flow, const char *why, bool passes);

sgi_str sgi_flow_consent_url(const sgi_flow *flow);
sgi_str sgi_flow_state_parameter(const sgi_flow *flow);
/* Returns how many ms the flow waits for the user's consent. */
int64_t sgi_flow_consent_timeout_ms(const sgi_flow *flow);
/* Stops the flow. Called when the transport of the endpoint ends. */
void sgi_flow_stop(sgi_flow *flow);
/* Ends the flow. Called when the user has not agreed in time. */
void sgi_flow_on_consent_timeout(sgi_flow *flow);
/* Passes a redirect of the browser to the flow that has the state in the URL. redirect:
 * the full URL. Returns SEGUE_OK, SEGUE_E_NOT_FOUND, SEGUE_E_INVALID or SEGUE_E_NOMEM.
 * The flow then calls its callback `moved`. */
segue_status sgi_flow_on_browser_redirect(sgi_engine *engine, sgi_str redirect);
void sgi_flow_set_change_callback(sgi_flow *flow, void (*moved)(void *user), void *user);

#endif
