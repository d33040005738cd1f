/* The server does not let a request in. It goes again with another token, where OAuth has
 * one (http_ask_token.c). Otherwise the application is asked for other headers, once. */
#include "transport/http_ask.h"

#include "wire/challenge.h"

void sgi_http_ask_note(sgi_http_ask *ask, const sgi_fetch *fetch)
{
    sgi_buf_reset(&ask->challenge, 0);
    if (ask->status == 401 || ask->status == 403)
        sgi_fetch_add_headers(fetch, "www-authenticate", &ask->challenge);
    if (ask->status < 400)
        sgi_http_ask_admitted(ask);
}

/* The application may have other headers: it is asked, once. */
static bool ask_application(sgi_http_ask *ask)
{
    if ((ask->status != 401 && ask->status != 403) || ask->asked_again ||
        !sgi_header_hook_asks(ask->client->hook))
        return false;
    ask->asked_again = ask->waits_for_headers = true;
    sgi_buf_reset(&ask->body, 0);
    sgi_header_hook_ask(ask->client->hook, ask->client, ask->status);
    return true;
}

/* Of the challenge, behind a colon; what is not plain is left out. */
static size_t add_said(sgi_http_ask *ask, const char *name, char *text, size_t room)
{
    sgi_buf said;
    size_t n = 0;
    sgi_buf_init(&said, ask->challenge.mem);
    if (sgi_challenge_find(sgi_buf_str(&ask->challenge), name, &said) && said.len) {
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

void sgi_http_ask_unauthorized(sgi_http_ask *ask)
{
    char text[400] = "it asks for authorization";
    size_t n = strlen(text);
    n += add_said(ask, "error", text + n, 100);
    add_said(ask, "error_description", text + n, sizeof text - n);
    sgi_ask_unauthorized(ask->conn, ask->status, text);
}

bool sgi_http_ask_again(sgi_http_ask *ask)
{
    return sgi_http_ask_renew(ask) || ask_application(ask);
}
