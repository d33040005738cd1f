#include "test_certs.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct pair {
    X509 *cert;
    EVP_PKEY *key;
} pair;

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "certificates: %s failed\n", what);
    abort();
}

static void extend(X509 *cert, int what, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, what, value);
    must(extension && X509_add_ext(cert, extension, -1), value);
    X509_EXTENSION_free(extension);
}

/* by NULL = signed by itself: an authority. */
static pair make(const char *name, const char *names, const pair *by)
{
    static long serial = 1;
    pair p = {X509_new(), EVP_EC_gen("P-256")};
    must(p.cert && p.key, "X509_new");
    X509_set_version(p.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(p.cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(p.cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(p.cert), 24 * 3600);
    X509_set_pubkey(p.cert, p.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(p.cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(p.cert, X509_get_subject_name(by ? by->cert : p.cert));
    extend(p.cert, NID_basic_constraints, by ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (names)
        extend(p.cert, NID_subject_alt_name, names);
    must(X509_sign(p.cert, by ? by->key : p.key, EVP_sha256()) > 0, "X509_sign");
    return p;
}

static void drop(pair p)
{
    X509_free(p.cert);
    EVP_PKEY_free(p.key);
}

static FILE *create(char path[64], const test_certs *certs, const char *name)
{
    snprintf(path, 64, "%s/%s", certs->dir, name);
    FILE *file = fopen(path, "w");
    must(file != NULL, path);
    return file;
}

static void write_cert(char path[64], const test_certs *certs, const char *name, pair p,
                       int with_key)
{
    FILE *file = create(path, certs, name);
    must(PEM_write_X509(file, p.cert), path);
    if (with_key)
        must(PEM_write_PrivateKey(file, p.key, NULL, NULL, 0, NULL, NULL), path);
    fclose(file);
}

static void write_locked_key(char path[64], const test_certs *certs, const char *name,
                             pair p)
{
    FILE *file = create(path, certs, name);
    must(PEM_write_PrivateKey(file, p.key, EVP_aes_128_cbc(),
                              (const unsigned char *)TEST_CERTS_PASSWORD,
                              (int)strlen(TEST_CERTS_PASSWORD), NULL, NULL),
         path);
    fclose(file);
}

void test_certs_make(test_certs *certs)
{
    snprintf(certs->dir, sizeof certs->dir, "/tmp/certs_XXXXXX");
    must(mkdtemp(certs->dir) != NULL, "mkdtemp");
    pair ca = make("Test Authority", NULL, NULL);
    pair other = make("Other Authority", NULL, NULL);
    pair server = make("server", "IP:127.0.0.1,DNS:here.test", &ca);
    pair elsewhere = make("elsewhere", "DNS:elsewhere.test", &ca);
    pair client = make("client", NULL, &ca);
    write_cert(certs->ca, certs, "ca.pem", ca, 0);
    write_cert(certs->other_ca, certs, "other.pem", other, 0);
    write_cert(certs->server, certs, "server.pem", server, 1);
    write_cert(certs->elsewhere, certs, "elsewhere.pem", elsewhere, 1);
    write_cert(certs->client, certs, "client.pem", client, 0);
    write_locked_key(certs->client_key, certs, "client_key.pem", client);
    drop(ca);
    drop(other);
    drop(server);
    drop(elsewhere);
    drop(client);
}

void test_certs_remove(test_certs *certs)
{
    unlink(certs->ca);
    unlink(certs->other_ca);
    unlink(certs->server);
    unlink(certs->elsewhere);
    unlink(certs->client);
    unlink(certs->client_key);
    rmdir(certs->dir);
}
