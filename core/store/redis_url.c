/* Parses the URLs of Redis servers. All parts of a URL are copied into fields of fixed
 * size, so parsing cannot fail for lack of memory. The store wipes the fields when it
 * closes. An unknown part or option is refused, because a mistyped option would otherwise
 * be ignored without notice. */
#include "store/redis_url.h"

#include "base/percent.h"

#include <stdio.h>

static bool take_number(sgi_str from, int32_t most, int32_t *out)
{
    int32_t value = 0;
    if (!from.n || from.n > 6)
        return false;
    for (size_t i = 0; i < from.n; i++) {
        if (from.p[i] < '0' || from.p[i] > '9')
            return false;
        value = value * 10 + (from.p[i] - '0');
    }
    *out = value;
    return value <= most;
}

/* Splits a text at the first character c into *head and *tail. When the text has no c,
 * *head is the whole text, *tail is empty, and the function returns false. */
static bool split(sgi_str text, char c, sgi_str *head, sgi_str *tail)
{
    const char *at = text.n ? memchr(text.p, c, text.n) : NULL;
    *head = text;
    *tail = (sgi_str){"", 0};
    if (!at)
        return false;
    head->n = (size_t)(at - text.p);
    *tail = (sgi_str){at + 1, text.n - head->n - 1};
    return true;
}

/* Stores the prefix of the keys. Returns false when the text has a character that must
 * not stand between the braces of a hash tag. */
static bool take_prefix(sgi_redis_url *url, sgi_str text)
{
    if (!text.n || text.n > SGI_REDIS_PREFIX_MAX)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == ':'))
            return false;
    }
    memcpy(url->prefix, text.p, text.n);
    url->prefix[text.n] = 0;
    return true;
}

static bool take_option(sgi_redis_url *url, sgi_str name, sgi_str value)
{
    if (sgi_str_eq(name, SGI_STR("prefix")))
        return take_prefix(url, value);
    if (sgi_str_eq(name, SGI_STR("ca")))
        return url->tls && value.n &&
               sgi_percent_decode(url->ca_file, sizeof url->ca_file, value);
    if (url->port)
        /* only the URL of a Unix socket has the options below; a URL with a host has the
         * database and the password before the question mark */
        return false;
    if (sgi_str_eq(name, SGI_STR("db")))
        return take_number(value, 65535, &url->db);
    if (sgi_str_eq(name, SGI_STR("user")))
        return sgi_percent_decode(url->user, sizeof url->user, value);
    return sgi_str_eq(name, SGI_STR("password")) &&
           sgi_percent_decode(url->password, sizeof url->password, value);
}

static bool take_options(sgi_redis_url *url, sgi_str query)
{
    while (query.n) {
        sgi_str pair, name, value;
        split(query, '&', &pair, &query);
        if (!split(pair, '=', &name, &value) || !take_option(url, name, value))
            return false;
    }
    return true;
}

static const char *take_host(sgi_redis_url *url, sgi_str place)
{
    sgi_str host, port;
    if (place.n && *place.p == '[') {
        if (!split((sgi_str){place.p + 1, place.n - 1}, ']', &host, &port) ||
            (port.n && *port.p != ':'))
            return "a bracket is missing in the host";
        if (port.n)
            port = (sgi_str){port.p + 1, port.n - 1};
    } else {
        split(place, ':', &host, &port);
    }
    if (!host.n || !sgi_percent_decode(url->host, sizeof url->host, host))
        return "the host is missing or too long";
    url->port = 6379;
    if (port.n && (!take_number(port, 65535, &url->port) || !url->port))
        return "the port is not a number from 1 to 65535";
    return NULL;
}

static const char *take_network(sgi_redis_url *url, sgi_str rest)
{
    sgi_str place, db, who, user, password;
    split(rest, '/', &place, &db);
    /* the last @ ends the password, because a password can contain an @ */
    const char *at = place.n ? memrchr(place.p, '@', place.n) : NULL;
    if (at) {
        who = (sgi_str){place.p, (size_t)(at - place.p)};
        place = (sgi_str){at + 1, place.n - who.n - 1};
        if (!split(who, ':', &user, &password) || !password.n)
            return "user and password have to be written as user:password@ or :password@";
        if (!sgi_percent_decode(url->user, sizeof url->user, user) ||
            !sgi_percent_decode(url->password, sizeof url->password, password))
            return "user or password is malformed or too long";
    }
    if (db.n && !take_number(db, 65535, &url->db))
        return "the database is not a number";
    return take_host(url, place);
}

static const char *take_all(sgi_redis_url *url, sgi_str text)
{
    static const sgi_str schemes[] = {SGI_STR_INIT("redis://"), SGI_STR_INIT("rediss://"),
                                      SGI_STR_INIT("unix://")};
    sgi_str rest, query;
    size_t scheme = 0;
    while (scheme < 3 && !sgi_str_skip(&text, schemes[scheme]))
        scheme++;
    if (scheme == 3)
        return "the URL has to begin with redis://, rediss:// or unix://";
    split(text, '?', &rest, &query);
    url->tls = scheme == 1;
    const char *reason = NULL;
    if (scheme < 2)
        reason = take_network(url, rest);
    else if (rest.n < 2 || *rest.p != '/' || !sgi_percent_decode(url->host, 108, rest))
        reason = "the path of the socket is missing, not absolute or too long";
    if (!reason && !take_options(url, query))
        reason = "an option after the question mark is unknown or malformed";
    if (!reason && *url->user && !*url->password)
        reason = "the URL has a user but no password";
    return reason;
}

segue_status sgi_redis_url_parse(sgi_redis_url *url, const char *text,
                                 const char **reason)
{
    *url = (sgi_redis_url){.prefix = "segue"};
    *reason = take_all(url, sgi_str_of(text));
    if (*reason)
        return SEGUE_E_INVALID;
    if (url->port)
        snprintf(url->shown, sizeof url->shown,
                 strchr(url->host, ':') ? "[%s]:%d" : "%s:%d", url->host, url->port);
    else
        snprintf(url->shown, sizeof url->shown, "%s", url->host);
    return SEGUE_OK;
}
