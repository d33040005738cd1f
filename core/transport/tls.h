/* The server's side of TLS, without a socket: bytes of the peer go in, plain bytes come
 * out, and what has to be sent is appended to a buffer. Loop thread; making and freeing a
 * setup: any thread. */
#ifndef SGI_TLS_H
#define SGI_TLS_H

#include "transport/transport.h"

/* PEM files. */
typedef struct sgi_tls_files {
    const char *cert;      /* with its chain */
    const char *key;       /* NULL = in the certificate's file */
    const char *client_ca; /* NULL = clients are not asked for a certificate */
    bool client_required;  /* ... and without one they are refused */
} sgi_tls_files;

/* What connections begin with; counted by them. */
typedef struct sgi_tls_setup sgi_tls_setup;
typedef struct sgi_tls sgi_tls;

/* Reads and checks the files. SEGUE_E_INVALID with the reason in why when they do not
 * fit, cannot be read or hold something else. */
segue_status sgi_tls_setup_new(const sgi_mem *mem, const sgi_tls_files *files,
                               sgi_tls_setup **out, char why[SGI_WHY_SIZE]);
/* Connections that were begun with it live on. Takes NULL. */
void sgi_tls_setup_free(sgi_tls_setup *setup);

/* More than that must not wait in the buffer for output: the connection fails then. A
 * record of largest size fits beside what one write of a link may leave there. */
#define SGI_TLS_MAX_OUT ((size_t)256 * 1024)

/* NULL when out of memory. */
sgi_tls *sgi_tls_new(const sgi_mem *mem, sgi_tls_setup *setup);
void sgi_tls_free(sgi_tls *tls);

typedef enum sgi_tls_result {
    SGI_TLS_BYTES = 0, /* plain bytes are there */
    SGI_TLS_MORE,      /* the input is used up */
    SGI_TLS_END,       /* the peer has ended the connection */
    SGI_TLS_FAULT      /* sgi_tls_explain says what is wrong */
} sgi_tls_result;

/* Input for the reads that follow, which have to go on until the result is not
 * SGI_TLS_BYTES. */
void sgi_tls_feed(sgi_tls *tls, const char *bytes, size_t len);
/* Also what makes the handshake go on. Any result may leave something in out. */
sgi_tls_result sgi_tls_read(sgi_tls *tls, char *to, size_t size, size_t *len,
                            sgi_buf *out);
/* Before the handshake is over, or when memory runs out, false: the connection has
 * failed. */
bool sgi_tls_write(sgi_tls *tls, const char *bytes, size_t len, sgi_buf *out);
/* Says that nothing more will be sent. */
void sgi_tls_end(sgi_tls *tls, sgi_buf *out);
/* The handshake is over. */
bool sgi_tls_is_ready(const sgi_tls *tls);
void sgi_tls_explain(const sgi_tls *tls, char why[SGI_WHY_SIZE]);

/* Appends the subject of the client's certificate (RFC 2253); false when the client has
 * shown none that was verified. */
bool sgi_tls_subject(const sgi_tls *tls, sgi_buf *into);

#endif
