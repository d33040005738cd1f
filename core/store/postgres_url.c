/* Parses the URLs of PostgreSQL stores. The name of the schema becomes a part of SQL
 * text, so it may have only lower-case letters, digits and underscores. The store wipes
 * the URLs when it closes, because they can contain a password. libpq refuses options
 * that it does not know. */
#include "store/postgres_url.h"

#include "base/percent.h"

#include <stdio.h>

static bool is_url(const char *text)
{
    return !strncmp(text, "postgres://", 11) || !strncmp(text, "postgresql://", 13);
}

static const char *take_schema(sgi_pg_url *url, sgi_str value)
{
    static const char why[] = "schema has to be 1 to 40 lower-case letters, digits and "
                              "underscores, and to begin with a letter";
    if (!sgi_percent_decode(url->schema, sizeof url->schema, value) || !value.n)
        return why;
    for (const char *at = url->schema; *at; at++) {
        bool letter = *at >= 'a' && *at <= 'z';
        bool other = (*at >= '0' && *at <= '9') || *at == '_';
        if (!letter && (!other || at == url->schema))
            return why;
    }
    return NULL;
}

static const char *take_sync(sgi_pg_url *url, sgi_str value)
{
    static const char *const values[] = {"on", "off", "local", "remote_write",
                                         "remote_apply"};
    if (sgi_percent_decode(url->sync, sizeof url->sync, value))
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            if (!strcmp(url->sync, values[i]))
                return NULL;
    return "synchronous_commit has to be on, off, local, remote_write or remote_apply";
}

/* Handles one option of the URL. *known becomes false for an option that belongs to
 * libpq. Returns NULL, or a text that tells what is wrong. */
static const char *take_option(sgi_pg_url *url, sgi_str name, sgi_str value, bool *known)
{
    *known = true;
    if (sgi_str_eq(name, SGI_STR("schema")))
        return take_schema(url, value);
    if (sgi_str_eq(name, SGI_STR("synchronous_commit")))
        return take_sync(url, value);
    if (sgi_str_eq(name, SGI_STR("listen")))
        return sgi_percent_decode(url->listen, sizeof url->listen, value) &&
                       is_url(url->listen)
                   ? NULL
                   : "listen has to be a URL that begins with postgresql://, "
                     "percent-encoded";
    *known = false;
    return NULL;
}

/* Handles the store's options, and copies libpq's options to the end of the URL. Returns
 * NULL, or a text that tells what is wrong. */
static const char *take_options(sgi_pg_url *url, char *end, const char *query)
{
    const char *reason = NULL;
    char before = '?';
    while (*query && !reason) {
        sgi_str pair = {query, strcspn(query, "&")};
        sgi_str name = {query, strcspn(query, "=&")};
        sgi_str value = {query + name.n + (name.n < pair.n),
                         pair.n - name.n - (name.n < pair.n)};
        bool known;
        reason = take_option(url, name, value, &known);
        query += pair.n + (query[pair.n] == '&');
        if (known)
            continue;
        *end++ = before;
        memcpy(end, pair.p, pair.n);
        end += pair.n;
        before = '&';
    }
    *end = 0;
    return reason;
}

segue_status sgi_pg_url_parse(sgi_pg_url *url, const char *text, const char **reason)
{
    *url = (sgi_pg_url){.schema = "segue"};
    size_t base = strcspn(text, "?");
    *reason = NULL;
    if (!is_url(text))
        *reason = "the URL has to begin with postgresql:// or postgres://";
    else if (strlen(text) + 1 >= sizeof url->server)
        *reason = "the URL is too long";
    else {
        memcpy(url->server, text, base);
        *reason =
            take_options(url, url->server + base, text + base + (text[base] == '?'));
    }
    return *reason ? SEGUE_E_INVALID : SEGUE_OK;
}
