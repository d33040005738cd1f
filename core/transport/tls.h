/* The server side of TLS, without a socket. The peer's bytes are given to it, plain bytes
 * are read from it, and bytes to send are appended to a buffer. Only the loop thread uses
 * a connection. Any thread may make and free a setup. */
#ifndef SGI_TLS_H
#define SGI_TLS_H

#include "transport/transport.h"

/* The paths of the PEM files of a setup. */
typedef struct sgi_tls_files {
    const char *cert; /* the file of the certificate with its chain */
    /* the file of the private key; NULL = the key is in the certificate's file */
    const char *key;
    /* the file of the authorities for client certificates; NULL = the server does not ask
     * clients for certificates */
    const char *client_ca;
    bool client_required; /* true = clients without a valid certificate are refused */
} sgi_tls_files;

/* A setup: the certificates and settings of new connections, with a reference count. Each
 * connection holds a reference to its setup. */
typedef struct sgi_tls_setup sgi_tls_setup;
typedef struct sgi_tls sgi_tls;

/* Reads and checks the files. Returns SEGUE_E_INVALID with the reason in `why` when a
 * file cannot be read, is malformed, or does not fit the other files. */
segue_status sgi_tls_setup_new(const sgi_mem *mem, const sgi_tls_files *files,
                               sgi_tls_setup **out, char why[SGI_WHY_SIZE]);
/* Drops the owner's reference to the setup. Existing connections keep the setup alive.
 * Does nothing for NULL. */
void sgi_tls_setup_free(sgi_tls_setup *setup);

/* Maximum bytes in the output buffer. A connection that needs more fails. The maximum has
 * space for the bytes that one write of a link can leave in the buffer, and for the
 * largest TLS record. */
#define SGI_TLS_MAX_OUT ((size_t)256 * 1024)

/* Makes the TLS state of a new connection. Returns NULL when out of memory. */
sgi_tls *sgi_tls_new(const sgi_mem *mem, sgi_tls_setup *setup);
void sgi_tls_free(sgi_tls *tls);

typedef enum sgi_tls_result {
    SGI_TLS_BYTES = 0, /* plain bytes were read */
    SGI_TLS_MORE,      /* the input is used up */
    SGI_TLS_END,       /* the peer has ended the connection */
    SGI_TLS_FAULT      /* TLS has failed; sgi_tls_explain has the reason */
} sgi_tls_result;

/* Gives received bytes to the connection. The caller then calls sgi_tls_read until the
 * result is not SGI_TLS_BYTES. */
void sgi_tls_add_input(sgi_tls *tls, const char *bytes, size_t len);
/* Reads plain bytes, and continues the handshake. Whatever the result is, a call can
 * append bytes to send to `out`. */
sgi_tls_result sgi_tls_read(sgi_tls *tls, char *to, size_t size, size_t *len,
                            sgi_buf *out);
/* Encrypts bytes and appends the result to `out`. Returns false before the handshake has
 * ended and when out of memory; the connection has then failed. */
bool sgi_tls_write(sgi_tls *tls, const char *bytes, size_t len, sgi_buf *out);
/* Appends the message close_notify to `out`. The message tells the peer that no more
 * bytes will be sent. */
void sgi_tls_end(sgi_tls *tls, sgi_buf *out);
/* True when the handshake has ended. */
bool sgi_tls_is_ready(const sgi_tls *tls);
void sgi_tls_explain(const sgi_tls *tls, char why[SGI_WHY_SIZE]);

/* Appends the subject of the client's verified certificate (RFC 2253) to `into`. Returns
 * false when the client has shown no verified certificate. */
bool sgi_tls_add_cert_subject(const sgi_tls *tls, sgi_buf *into);

#endif
