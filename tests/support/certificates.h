/* Makes keys and certificates for a test, as PEM files. A failure ends the program,
 * because the code under test did not cause it. */
#ifndef CERTIFICATES_H
#define CERTIFICATES_H

#include <openssl/x509.h>

typedef struct test_cert {
    EVP_PKEY *key;
    X509 *cert;
} test_cert;

typedef enum test_key_kind { TEST_KEY_EC, TEST_KEY_RSA } test_key_kind;

/* Makes a certificate with CN=name, valid now, for the hosts localhost and 127.0.0.1.
 * With issuer NULL the certificate is an authority that signs itself. */
void test_cert_make(test_cert *made, const char *name, test_key_kind kind,
                    const test_cert *issuer);
/* Makes a certificate for other hosts ("IP:127.0.0.1,DNS:here.test"). hosts NULL = for a
 * client. */
void test_cert_make_for(test_cert *made, const char *hosts, const test_cert *issuer);
/* Saves the certificate and the key; either path may be NULL. */
void test_cert_save(const test_cert *cert, const char *cert_path, const char *key_path);
/* Saves certificate and key in one file; the second function saves the key alone,
 * encrypted. */
void test_cert_save_both(const test_cert *cert, const char *path);
void test_cert_save_locked(const test_cert *cert, const char *key_path,
                           const char *password);
void test_cert_free(test_cert *cert);

#endif
