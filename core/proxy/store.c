/* The store of each path. A server that claims interrupted operations ends those whose
 * tools it lacks, so each path has its own store: a file beside that of --store, a prefix
 * of keys in Redis, or a schema in PostgreSQL. */
#include "service.h"

#include <stdio.h>
#include <string.h>

/* The longest part of a path that appears in the name of its store. With the hash, the
 * name fits into the name of a schema of PostgreSQL (40 bytes) behind "segue_". */
#define PLAIN_MAX 14

static uint64_t hash(const char *path)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = path; *c; c++)
        sum = (sum ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return sum;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* "/git" is "git". Any other path has characters that a file or a schema may not have, so
 * its name ends with a hash of the path. */
void store_name_of(const char *path, char name[STORE_NAME_SIZE])
{
    size_t len = 0;
    bool plain = strlen(path + 1) <= PLAIN_MAX;
    for (const char *c = path + 1; *c && len < PLAIN_MAX; c++) {
        plain = plain && is_plain(*c);
        name[len++] = is_plain(*c) ? *c : '_';
    }
    name[len] = 0;
    if (!plain || !len)
        snprintf(name + len, STORE_NAME_SIZE - len, "_%016llx",
                 (unsigned long long)hash(path));
}

/* "tasks.db" becomes "tasks.git.db". */
static void write_file(const char *where, const char *name, text *to)
{
    const char *slash = strrchr(where, '/'), *base = slash ? slash + 1 : where;
    const char *dot = strrchr(base, '.');
    size_t before = dot && dot > base ? (size_t)(dot - where) : strlen(where);
    text_add(to, where, before);
    text_add_str(to, ".");
    text_add_str(to, name);
    text_add_str(to, where + before);
}

/* Writes a URL whose option has the name of the path, too. option: such as "prefix=",
 * whose value is `standard` when the URL has none. */
static void write_url(const char *where, const char *option, const char *standard,
                      const char *between, const char *name, text *to)
{
    const char *query = strchr(where, '?'), *at = query ? query + 1 : NULL;
    while (at && strncmp(at, option, strlen(option)) != 0) {
        at = strchr(at, '&');
        at += at != NULL;
    }
    const char *end = at ? at + strcspn(at, "&") : where + strlen(where);
    text_add(to, where, (size_t)(end - where));
    if (!at) {
        text_add_str(to, query ? "&" : "?");
        text_add_str(to, option);
        text_add_str(to, standard);
    }
    text_add_str(to, between);
    text_add_str(to, name);
    text_add_str(to, end);
}

static segue_status open_at(const char *where, segue_store **out, segue_error **error)
{
    store_kind kind = config_store_kind(where);
    if (kind == STORE_REDIS)
        return segue_store_redis(where, NULL, out, error);
    if (kind == STORE_POSTGRES)
        return segue_store_postgres(where, NULL, out, error);
    return segue_store_sqlite(where, NULL, out, error);
}

segue_status store_open(const char *where, const char *name, segue_store **out,
                        segue_error **error)
{
    text own = {.p = NULL};
    store_kind kind = config_store_kind(where);
    if (!*name)
        return open_at(where, out, error);
    if (kind == STORE_REDIS)
        write_url(where, "prefix=", "segue", "-", name, &own);
    else if (kind == STORE_POSTGRES)
        write_url(where, "schema=", "segue", "_", name, &own);
    else
        write_file(where, name, &own);
    segue_status status = own.failed ? SEGUE_E_NOMEM : open_at(own.p, out, error);
    text_free(&own);
    return status;
}
