/* Certificates made on the spot, in a directory of their own: an authority, what it has
 * signed, and another authority that nobody trusts. Faults abort. */
#ifndef TEST_CERTS_H
#define TEST_CERTS_H

#define TEST_CERTS_PASSWORD "open sesame"

typedef struct test_certs {
    char dir[32];
    char ca[64];        /* the authority's certificate */
    char other_ca[64];  /* ... and that of the other */
    char server[64];    /* certificate and key in one file, for 127.0.0.1 and here.test */
    char elsewhere[64]; /* the same for elsewhere.test */
    char client[64];    /* of the same authority, certificate alone */
    char client_key[64]; /* its key, encrypted with the password */
} test_certs;

void test_certs_make(test_certs *certs);
void test_certs_remove(test_certs *certs);

#endif
