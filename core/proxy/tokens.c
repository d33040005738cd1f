#include "tokens.h"

#include "proxy.h"
#include "sha256.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct token {
    token *next;
    char *principal;
    unsigned char digest[SHA256_SIZE];
};

void tokens_free(token *list)
{
    while (list) {
        token *next = list->next;
        free(list->principal);
        free(list);
        list = next;
    }
}

/* ---- the file ---- */

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Reads the digits of a digest. Returns false when the text is something else. */
static bool read_digest(const char *words, unsigned char digest[SHA256_SIZE])
{
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        int high = digit_of(words[2 * i]);
        int low = high < 0 ? -1 : digit_of(words[2 * i + 1]);
        if (low < 0)
            return false;
        digest[i] = (unsigned char)(high << 4 | low);
    }
    return !words[(size_t)2 * SHA256_SIZE];
}

/* Takes a line, and adds its token to the list. Returns false when the line is wrong. */
static bool take_line(token **list, char *line)
{
    char *rest = NULL;
    char *principal = strtok_r(line, " \t\r\n", &rest);
    char *digits = principal ? strtok_r(NULL, " \t\r\n", &rest) : NULL;
    if (!principal || *principal == '#')
        return true;
    token *t = calloc(1, sizeof *t);
    if (!t)
        return false;
    t->next = *list;
    *list = t;
    t->principal = copy_string(principal);
    return t->principal && digits && read_digest(digits, t->digest) &&
           !strtok_r(NULL, " \t\r\n", &rest);
}

token *tokens_read(const char *path)
{
    FILE *file = fopen(path, "re");
    token *list = NULL;
    char *line = NULL;
    size_t room = 0;
    int number = 0;
    bool ok = true;
    if (!file) {
        log_event(SEGUE_LOG_ERROR, "tokens_invalid", NULL, "cannot open %s: %s", path,
                  strerror(errno));
        return NULL;
    }
    while (ok && getline(&line, &room, file) >= 0) {
        number++;
        ok = take_line(&list, line);
    }
    if (!ok)
        log_event(SEGUE_LOG_ERROR, "tokens_invalid", NULL,
                  "%s: line %d is not a principal and the SHA-256 of a token", path,
                  number);
    else if (!list)
        log_event(SEGUE_LOG_ERROR, "tokens_invalid", NULL, "%s has no token", path);
    free(line);
    fclose(file);
    if (ok)
        return list;
    tokens_free(list);
    return NULL;
}

/* ---- the check ---- */

/* Compares all bytes in any case, so that the time tells nothing about the digest. */
static bool is_same(const unsigned char *a, const unsigned char *b)
{
    unsigned char difference = 0;
    for (size_t i = 0; i < SHA256_SIZE; i++)
        difference |= a[i] ^ b[i];
    return !difference;
}

const char *tokens_principal(const token *list, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    unsigned char digest[SHA256_SIZE];
    if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
        return NULL;
    authorization += strlen(scheme);
    authorization += strspn(authorization, " ");
    sha256(authorization, strlen(authorization), digest);
    const char *principal = NULL;
    for (; list; list = list->next)
        if (is_same(list->digest, digest) && !principal)
            principal = list->principal;
    return principal;
}
