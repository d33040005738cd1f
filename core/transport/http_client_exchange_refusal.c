/* Handles a request that the server refuses. If OAuth can get another token, the request
 * is sent again with that token (http_client_exchange_token.c). Otherwise the application
 * is asked once for other headers. */
#include "transport/http_client_exchange.h"

#include "wire/challenge.h"

void sgi_client_exchange_note_refusal(sgi_client_exchange *exchange,
                                      const sgi_fetch *fetch)
{
    sgi_buf_reset(&exchange->challenge, 0);
    if (exchange->response.status == 401 || exchange->response.status == 403)
        sgi_fetch_add_headers(fetch, "www-authenticate", &exchange->challenge);
    if (exchange->response.status < 400)
        sgi_client_exchange_on_token_accepted(exchange);
}

/* Asks the application once for other headers. Returns false when the status is neither
 * 401 nor 403, the application was already asked, or there is no callback for headers. */
static bool ask_application(sgi_client_exchange *exchange)
{
    if ((exchange->response.status != 401 && exchange->response.status != 403) ||
        exchange->asked_again || !sgi_header_hook_has_callback(exchange->client->hook))
        return false;
    exchange->asked_again = true;
    exchange->headers = SGI_HEADERS_WANTED;
    sgi_buf_reset(&exchange->response.body, 0);
    sgi_header_hook_run(exchange->client->hook, exchange->client,
                        exchange->response.status);
    return true;
}

/* Writes ": " and a parameter of the server's challenge into `text`, without characters
 * outside printable ASCII. Writes an empty text if the challenge has no such parameter.
 * Returns the length of the text. */
static size_t add_said(sgi_client_exchange *exchange, const char *name, char *text,
                       size_t room)
{
    sgi_buf said;
    size_t n = 0;
    sgi_buf_init(&said, exchange->challenge.mem);
    if (sgi_challenge_find(sgi_buf_str(&exchange->challenge), name, &said) && said.len) {
        text[n++] = ':';
        text[n++] = ' ';
        for (size_t i = 0; i < said.len && n + 1 < room; i++)
            if (said.p[i] >= ' ' && said.p[i] <= '~')
                text[n++] = said.p[i];
    }
    text[n] = 0;
    sgi_buf_free(&said);
    return n;
}

void sgi_client_exchange_end_unauthorized(sgi_client_exchange *exchange)
{
    char text[400] = "the server requires authorization";
    size_t n = strlen(text);
    n += add_said(exchange, "error", text + n, 100);
    add_said(exchange, "error_description", text + n, sizeof text - n);
    sgi_exchange_on_access_refused(exchange->conn, exchange->response.status, text);
}

bool sgi_client_exchange_retry_refused(sgi_client_exchange *exchange)
{
    return sgi_client_exchange_retry_with_new_token(exchange) ||
           ask_application(exchange);
}
