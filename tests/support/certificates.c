#include "certificates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

static void insist(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "certificates: %s\n", what);
    ERR_print_errors_fp(stderr);
    abort();
}

static void extend(X509 *cert, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    insist(extension != NULL, value);
    X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
}

static void name_it(X509 *cert, const char *name, const test_cert *issuer)
{
    X509_NAME *subject = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name,
                               -1, -1, 0);
    X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer->cert) : subject);
}

static void make(test_cert *made, const char *name, test_key_kind kind, const char *hosts,
                 const test_cert *issuer)
{
    static long serial = 1;
    made->key = kind == TEST_KEY_EC ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048);
    made->cert = X509_new();
    insist(made->key && made->cert, "no key");
    X509_set_version(made->cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made->cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made->cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made->cert), 24 * 3600);
    X509_set_pubkey(made->cert, made->key);
    name_it(made->cert, name, issuer);
    extend(made->cert, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
    if (hosts)
        extend(made->cert, NID_subject_alt_name, hosts);
    insist(X509_sign(made->cert, issuer ? issuer->key : made->key, EVP_sha256()) > 0,
           "not signed");
}

void test_cert_make(test_cert *made, const char *name, test_key_kind kind,
                    const test_cert *issuer)
{
    make(made, name, kind, "DNS:localhost,IP:127.0.0.1", issuer);
}

void test_cert_make_for(test_cert *made, const char *hosts, const test_cert *issuer)
{
    make(made, hosts ? "server" : "client", TEST_KEY_EC, hosts, issuer);
}

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    insist(file != NULL, path);
    return file;
}

static void save_cert(const test_cert *cert, const char *path)
{
    FILE *file = open_file(path, "w");
    insist(PEM_write_X509(file, cert->cert), path);
    fclose(file);
}

static void save_key(const test_cert *cert, const char *path, const char *mode,
                     const char *password)
{
    FILE *file = open_file(path, mode);
    insist(PEM_write_PrivateKey(file, cert->key, password ? EVP_aes_128_cbc() : NULL,
                                (const unsigned char *)password,
                                password ? (int)strlen(password) : 0, NULL, NULL),
           path);
    fclose(file);
}

void test_cert_save(const test_cert *cert, const char *cert_path, const char *key_path)
{
    if (cert_path)
        save_cert(cert, cert_path);
    if (key_path)
        save_key(cert, key_path, "w", NULL);
}

void test_cert_save_both(const test_cert *cert, const char *path)
{
    save_cert(cert, path);
    save_key(cert, path, "a", NULL);
}

void test_cert_save_locked(const test_cert *cert, const char *key_path,
                           const char *password)
{
    save_key(cert, key_path, "w", password);
}

void test_cert_free(test_cert *cert)
{
    EVP_PKEY_free(cert->key);
    X509_free(cert->cert);
    *cert = (test_cert){NULL, NULL};
}
