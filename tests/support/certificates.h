/* Keys and certificates made for a test, as PEM files. What fails ends the program: it is
 * no fault of the code under test. */
#ifndef CERTIFICATES_H
#define CERTIFICATES_H

#include <openssl/x509.h>

typedef struct test_cert {
    EVP_PKEY *key;
    X509 *cert;
} test_cert;

typedef enum test_key_kind { TEST_KEY_EC, TEST_KEY_RSA } test_key_kind;

/* CN=name, valid now, for the hosts localhost and 127.0.0.1. issuer NULL: an authority,
 * signed by itself. */
void test_cert_make(test_cert *made, const char *name, test_key_kind kind,
                    const test_cert *issuer);
/* The same for other hosts ("IP:127.0.0.1,DNS:here.test"), or for a client, NULL. */
void test_cert_make_for(test_cert *made, const char *hosts, const test_cert *issuer);
/* Either path may be NULL. */
void test_cert_save(const test_cert *cert, const char *cert_path, const char *key_path);
/* Certificate and key in one file; the key alone, encrypted. */
void test_cert_save_both(const test_cert *cert, const char *path);
void test_cert_save_locked(const test_cert *cert, const char *key_path,
                           const char *password);
void test_cert_free(test_cert *cert);

#endif
