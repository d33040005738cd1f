/* authorizing: how a client comes by its access token (2026-07-28 basic/authorization),
 * sans-IO. A flow belongs to one endpoint. It says what it needs next, an HTTP exchange,
 * the browser, what was kept, and is told what came of it; in between it holds the token.
 *
 *   flow.c          its life, and what a request hears before and after it goes
 *   flow_settings.c what the application says of itself
 *   flow_text.c     the table of texts, and reading JSON into it
 *   discovery.c     the resource's metadata, and that of its authorization server
 *   registration.c  who we are to that server
 *   consent.c       PKCE, the authorization URL, what the browser came back with
 *   token_endpoint.c  the token endpoint
 *   scope_choice.c  sets of scopes, and which are asked for
 *   vault.c         what is kept, as JSON
 *
 * Under the engine's lock. No function calls another side back, except `moved`. */
#ifndef SGI_FLOW_H
#define SGI_FLOW_H

#include "engine/engine.h"

/* Larger answers are none. */
#define SGI_FLOW_BODY_MAX ((size_t)256 * 1024)
/* The most entries of scopes_supported that are looked at, and the most bytes of scopes
 * that are asked for. The rest is ignored. */
#define SGI_FLOW_OFFERED_MAX 1000
#define SGI_FLOW_SCOPES_MAX ((size_t)8 * 1024)
#define SGI_FLOW_WHY_SIZE 320
#define SGI_FLOW_EXCHANGE_MS 30000

typedef struct sgi_flow sgi_flow;

/* full size; texts are copied. SEGUE_E_INVALID when they do not go together. */
segue_status sgi_flow_new(sgi_engine *engine, const char *endpoint,
                          const segue_oauth_options *options, sgi_flow **out);
void sgi_flow_free(sgi_flow *flow);

/* ---- what requests ask ---- */

typedef enum sgi_flow_verdict {
    SGI_FLOW_GO = 0, /* the request may go, with what sgi_flow_header says */
    SGI_FLOW_WAIT,   /* until sgi_flow_next says SGI_FLOW_NOTHING */
    SGI_FLOW_NO,     /* nothing helps; sgi_flow_why tells */
    SGI_FLOW_OTHER   /* that refusal is no matter of authorization */
} sgi_flow_verdict;

/* Before a request goes: GO or WAIT. */
sgi_flow_verdict sgi_flow_prepare(sgi_flow *flow);
/* The value of Authorization, empty when there is no token; serial: of the token, 0 when
 * there is none. */
sgi_str sgi_flow_header(const sgi_flow *flow, uint64_t *serial);
/* 401 or 403 came for a request with that token; challenge: WWW-Authenticate. */
sgi_flow_verdict sgi_flow_refused(sgi_flow *flow, int32_t status, sgi_str challenge,
                                  uint64_t serial);
/* The token comes from a grant, not from renewing another or from what was kept. */
bool sgi_flow_is_granted(const sgi_flow *flow);
/* The server has let a request pass. */
void sgi_flow_accepted(sgi_flow *flow, uint64_t serial);

/* ---- what it needs ---- */

typedef enum sgi_flow_need {
    SGI_FLOW_NOTHING = 0, /* it is through, or was never begun */
    SGI_FLOW_LOAD,        /* what was kept under sgi_flow_key */
    SGI_FLOW_SAVE,        /* sgi_flow_record, under sgi_flow_key */
    SGI_FLOW_EXCHANGE,
    SGI_FLOW_CONSENT,  /* the browser at sgi_flow_url */
    SGI_FLOW_ASSERTION /* for sgi_flow_issuer and sgi_flow_resource */
} sgi_flow_need;

sgi_flow_need sgi_flow_next(const sgi_flow *flow);
/* Where it is through: SEGUE_OK, or why there is no token. SEGUE_E_UNAUTHORIZED is final.
 * After any other status another try may get one: the authorization server was out of
 * reach, or memory was. */
segue_status sgi_flow_status(const sgi_flow *flow);
const char *sgi_flow_why(const sgi_flow *flow);

/* Views that live until the flow goes on; key, url and state end in NUL. */
sgi_str sgi_flow_key(const sgi_flow *flow);
sgi_str sgi_flow_record(const sgi_flow *flow);
void sgi_flow_loaded(sgi_flow *flow, sgi_str text);
void sgi_flow_saved(sgi_flow *flow);

sgi_str sgi_flow_issuer(const sgi_flow *flow);
sgi_str sgi_flow_resource(const sgi_flow *flow);
/* Empty: there is none. */
void sgi_flow_asserted(sgi_flow *flow, sgi_str assertion);

typedef struct sgi_flow_exchange {
    const char *url;
    bool post;
    bool at_endpoint;      /* the origin is that of the endpoint */
    bool public_only;      /* a server has named the host, and nobody has allowed it to
                              be one that is not public */
    bool same_host;        /* the host is that of the endpoint, at another port perhaps */
    bool is_local;         /* the endpoint is on this machine */
    sgi_str authorization; /* headers; empty = none */
    sgi_str type;
    sgi_str body;
} sgi_flow_exchange;

void sgi_flow_look(const sgi_flow *flow, sgi_flow_exchange *exchange);
void sgi_flow_answered(sgi_flow *flow, int32_t status, sgi_str body);
void sgi_flow_redirected(sgi_flow *flow, sgi_str location);
/* It brought no answer, or one beyond the limit. why: one line; passes: it may bring one
 * later. */
void sgi_flow_unanswered(sgi_flow *flow, const char *why, bool passes);

sgi_str sgi_flow_url(const sgi_flow *flow);
sgi_str sgi_flow_state(const sgi_flow *flow);
int64_t sgi_flow_patience(const sgi_flow *flow); /* ms */
/* Its transport ends. */
void sgi_flow_stop(sgi_flow *flow);
/* Nobody has agreed in time. */
void sgi_flow_give_up(sgi_flow *flow);
/* The browser came back: to the flow that waits for this state. SEGUE_E_NOT_FOUND,
 * SEGUE_E_INVALID and SEGUE_E_NOMEM. Afterwards `moved` of that flow is called. */
segue_status sgi_flow_come_back(sgi_engine *engine, sgi_str redirect);
void sgi_flow_on_move(sgi_flow *flow, void (*moved)(void *user), void *user);

#endif
