/* TLS to a Redis server, when hiredis supports it (hiredis_ssl, from 1.0 on). hiredis
 * checks the chain of a certificate but not its name. Therefore this file makes the TLS
 * session itself, with the CA certificates of the system or of the URL's file, and with
 * the host name of the URL. */
#include "store/redis_link.h"

#ifdef SGI_REDIS_TLS

#include <arpa/inet.h>
#include <stdio.h>

#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

static SSL_CTX *new_context(const sgi_redis_url *url)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context)
        return NULL;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    int ok = *url->ca_file ? SSL_CTX_load_verify_locations(context, url->ca_file, NULL)
                           : SSL_CTX_set_default_verify_paths(context);
    if (ok)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

static bool set_name(SSL *ssl, const char *host)
{
    unsigned char address[16];
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

bool sgi_redis_tls_start(redisContext *context, const sgi_redis_url *url, void **tls,
                         char *fault, size_t size)
{
    SSL_CTX *settings = new_context(url);
    SSL *ssl = settings ? SSL_new(settings) : NULL;
    *tls = settings;
    bool ok = ssl && set_name(ssl, url->host);
    if (!ok) {
        SSL_free(ssl);
        snprintf(fault, size, "TLS: %s",
                 *url->ca_file ? "the file of certificate authorities (ca) cannot be read"
                               : "TLS cannot be set up");
    } else if (redisInitiateSSL(context, ssl) != REDIS_OK) {
        /* redisFree frees `ssl` after success and after failure, so this code must not
         * free it */
        ok = false;
        snprintf(fault, size, "TLS: %s", context->errstr);
    }
    ERR_clear_error();
    return ok;
}

void sgi_redis_tls_free(void *tls)
{
    SSL_CTX_free(tls);
}

#else

bool sgi_redis_tls_start(redisContext *context, const sgi_redis_url *url, void **tls,
                         char *fault, size_t size)
{
    (void)context;
    (void)url;
    (void)tls;
    (void)fault;
    (void)size;
    return false;
}

void sgi_redis_tls_free(void *tls)
{
    (void)tls;
}

#endif
