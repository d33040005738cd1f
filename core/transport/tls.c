/* TLS by OpenSSL over a BIO of this file. The BIO's read function returns the bytes that
 * were fed, and its write function appends to the caller's buffer. Therefore OpenSSL
 * makes no system call, no write must be repeated, and all bytes are sent in one place.
 * This file and not libwebsockets does TLS, because of four faults of libwebsockets
 * 4.1.6. In its raw role, a connection with waiting output is not read and spins; an
 * established connection is closed by the handshake's timeout; the name that a client
 * sends chooses among all listeners of the process; handshakes are written with SIGPIPE.
 *
 * A setup never changes and has a reference count. A reload makes a new setup; existing
 * connections keep the old setup.
 *
 * Sessions are not resumed where clients show certificates: a resumed session would
 * bypass the certificate files of a reload. Renegotiation is off.
 * SSL_MODE_RELEASE_BUFFERS frees the record buffers while a connection is idle.
 *
 * OpenSSL allocates memory by its own means. Its error queue belongs to the thread and is
 * cleared before each call, so errors in the queue belong to this connection. */
#include "transport/tls.h"

#include <stdatomic.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

struct sgi_tls_setup {
    const sgi_mem *mem;
    atomic_size_t refs;
    SSL_CTX *context;
    BIO_METHOD *method;
};

struct sgi_tls {
    sgi_tls_setup *setup;
    SSL *ssl;
    const char *in;
    size_t in_len;
    /* the buffer of the caller, which receives bytes to send; set only during a call */
    sgi_buf *out;
    bool failed;
    /* OpenSSL's static text about the reason of the failure; NULL = unknown */
    const char *fault;
};

/* ---- the files ---- */

/* Returns true when OpenSSL has found nothing in a file that it can read. OpenSSL's own
 * words for this are "no start line" and "unsupported". */
static bool is_nothing(unsigned long fault)
{
    return ERR_GET_REASON(fault) == ERR_R_UNSUPPORTED ||
           (ERR_GET_LIB(fault) == ERR_LIB_PEM &&
            ERR_GET_REASON(fault) == PEM_R_NO_START_LINE);
}

/* Writes an error with the reason that OpenSSL gives, without OpenSSL's numbers. For
 * system errors (such as a missing file) OpenSSL has no texts. */
static segue_status refuse(char why[SGI_WHY_SIZE], const char *what, const char *path)
{
    char text[96];
    unsigned long fault = ERR_peek_error();
    const char *reason =
        ERR_SYSTEM_ERROR(fault)
            ? sgi_transport_describe(ERR_GET_REASON(fault), text, sizeof text)
        : is_nothing(fault) ? "the file has nothing of this kind in PEM form"
                            : ERR_reason_error_string(fault);
    snprintf(why, SGI_WHY_SIZE, "%s %s: %s", what, path,
             reason ? reason : "unknown reason");
    return SEGUE_E_INVALID;
}

/* OpenSSL's callback for a passphrase. Refuses a key file that needs a passphrase.
 * Without this callback OpenSSL would ask for the passphrase on the terminal. */
static int no_passphrase(char *text, int size, int writing, void *user)
{
    (void)text;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

/* OpenSSL's callback that chooses the application protocol (ALPN, RFC 7301). Chooses
 * http/1.1. A client that offers protocols without http/1.1 is refused. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *len,
                           const unsigned char *offered, unsigned int offered_len,
                           void *user)
{
    static const unsigned char ours[] = "\x08http/1.1";
    (void)ssl;
    (void)user;
    for (unsigned int at = 0; at < offered_len; at += 1u + offered[at]) {
        unsigned int n = offered[at];
        if (n == ours[0] && n < offered_len - at &&
            memcmp(offered + at + 1, ours + 1, n) == 0) {
            *chosen = offered + at + 1;
            *len = (unsigned char)n;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void set_rules(SSL_CTX *context)
{
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
}

static segue_status ask_clients(SSL_CTX *context, const sgi_tls_files *files,
                                char why[SGI_WHY_SIZE])
{
    int mode = SSL_VERIFY_PEER;
    STACK_OF(X509_NAME) * names;
    if (!files->client_ca)
        return SEGUE_OK;
    names = SSL_load_client_CA_file(files->client_ca);
    if (!names || !SSL_CTX_load_verify_file(context, files->client_ca)) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return refuse(why, "the file of client authorities", files->client_ca);
    }
    SSL_CTX_set_client_CA_list(context, names);
    if (files->client_required)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(context, mode, NULL);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
    return SEGUE_OK;
}

static segue_status fill(SSL_CTX *context, const sgi_tls_files *files,
                         char why[SGI_WHY_SIZE])
{
    const char *key = files->key ? files->key : files->cert;
    set_rules(context);
    if (!SSL_CTX_use_certificate_chain_file(context, files->cert))
        return refuse(why, "the certificate", files->cert);
    if (!SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) ||
        !SSL_CTX_check_private_key(context))
        return refuse(why, "the private key", key);
    return ask_clients(context, files, why);
}

/* ---- the BIO ---- */

static int bio_read(BIO *bio, char *to, size_t size, size_t *len)
{
    sgi_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *len = size < tls->in_len ? size : tls->in_len;
    if (!*len) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(to, tls->in, *len);
    tls->in += *len;
    tls->in_len -= *len;
    return 1;
}

static int bio_write(BIO *bio, const char *bytes, size_t size, size_t *len)
{
    sgi_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *len = 0;
    if (!tls->out || size > SGI_TLS_MAX_OUT - tls->out->len)
        return 0;
    sgi_buf_add(tls->out, bytes, size);
    if (tls->out->failed)
        return 0;
    *len = size;
    return 1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *make_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "segue");
    if (method && BIO_meth_set_create(method, bio_create) &&
        BIO_meth_set_read_ex(method, bio_read) &&
        BIO_meth_set_write_ex(method, bio_write) &&
        BIO_meth_set_ctrl(method, bio_control))
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* ---- setups ---- */

segue_status sgi_tls_setup_new(const sgi_mem *mem, const sgi_tls_files *files,
                               sgi_tls_setup **out, char why[SGI_WHY_SIZE])
{
    segue_status status = SEGUE_E_NOMEM;
    if (!files->cert || (files->client_required && !files->client_ca)) {
        snprintf(why, SGI_WHY_SIZE, "%s",
                 files->cert ? "client_cert_required needs client_ca_file"
                             : "TLS needs cert_file");
        return SEGUE_E_INVALID;
    }
    snprintf(why, SGI_WHY_SIZE, "out of memory");
    sgi_tls_setup *setup = sgi_zalloc(mem, sizeof *setup);
    if (!setup)
        return status;
    ERR_clear_error();
    setup->mem = mem;
    atomic_init(&setup->refs, 1);
    setup->context = SSL_CTX_new(TLS_server_method());
    setup->method = make_method();
    if (setup->context && setup->method)
        status = fill(setup->context, files, why);
    ERR_clear_error();
    if (status == SEGUE_OK)
        *out = setup;
    else
        sgi_tls_setup_free(setup);
    return status;
}

void sgi_tls_setup_free(sgi_tls_setup *setup)
{
    if (!setup || atomic_fetch_sub(&setup->refs, 1) > 1)
        return;
    SSL_CTX_free(setup->context);
    BIO_meth_free(setup->method);
    sgi_free(setup->mem, setup, sizeof *setup);
}

/* ---- connections ---- */

sgi_tls *sgi_tls_new(const sgi_mem *mem, sgi_tls_setup *setup)
{
    sgi_tls *tls = sgi_zalloc(mem, sizeof *tls);
    if (!tls)
        return NULL;
    atomic_fetch_add(&setup->refs, 1);
    tls->setup = setup;
    tls->ssl = SSL_new(setup->context);
    BIO *bio = tls->ssl ? BIO_new(setup->method) : NULL;
    if (!bio) {
        sgi_tls_free(tls);
        return NULL;
    }
    BIO_set_data(bio, tls);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

void sgi_tls_free(sgi_tls *tls)
{
    if (!tls)
        return;
    sgi_tls_setup *setup = tls->setup;
    SSL_free(tls->ssl);
    sgi_free(setup->mem, tls, sizeof *tls);
    sgi_tls_setup_free(setup);
}

static void begin(sgi_tls *tls, sgi_buf *out)
{
    tls->out = out;
    ERR_clear_error();
}

static void note_fault(sgi_tls *tls)
{
    long verdict = SSL_get_verify_result(tls->ssl);
    tls->failed = true;
    tls->fault = verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
                                      : ERR_reason_error_string(ERR_peek_error());
}

static void end(sgi_tls *tls)
{
    tls->out = NULL;
    ERR_clear_error();
}

void sgi_tls_add_input(sgi_tls *tls, const char *bytes, size_t len)
{
    tls->in = bytes;
    tls->in_len = len;
}

sgi_tls_result sgi_tls_read(sgi_tls *tls, char *to, size_t size, size_t *len,
                            sgi_buf *out)
{
    sgi_tls_result result = SGI_TLS_BYTES;
    if (tls->failed)
        return SGI_TLS_FAULT;
    begin(tls, out);
    if (!SSL_read_ex(tls->ssl, to, size, len)) {
        int error = SSL_get_error(tls->ssl, 0);
        result = error == SSL_ERROR_WANT_READ     ? SGI_TLS_MORE
                 : error == SSL_ERROR_ZERO_RETURN ? SGI_TLS_END
                                                  : SGI_TLS_FAULT;
        if (result == SGI_TLS_FAULT)
            note_fault(tls);
    }
    end(tls);
    return result;
}

bool sgi_tls_write(sgi_tls *tls, const char *bytes, size_t len, sgi_buf *out)
{
    size_t written;
    if (tls->failed || !SSL_is_init_finished(tls->ssl))
        return false;
    if (!len)
        return true;
    begin(tls, out);
    if (!SSL_write_ex(tls->ssl, bytes, len, &written))
        note_fault(tls);
    end(tls);
    return !tls->failed;
}

void sgi_tls_end(sgi_tls *tls, sgi_buf *out)
{
    if (tls->failed || !SSL_is_init_finished(tls->ssl))
        return;
    begin(tls, out);
    SSL_shutdown(tls->ssl);
    end(tls);
}

bool sgi_tls_is_ready(const sgi_tls *tls)
{
    return SSL_is_init_finished(tls->ssl);
}

void sgi_tls_explain(const sgi_tls *tls, char why[SGI_WHY_SIZE])
{
    snprintf(why, SGI_WHY_SIZE, "%s: %s",
             SSL_is_init_finished(tls->ssl) ? "TLS failed" : "the TLS handshake failed",
             tls->fault ? tls->fault : "unknown reason");
}

/* Appends the subject of the client's verified certificate in UTF-8. Control characters
 * and separators are escaped, so that the text is unambiguous. */
bool sgi_tls_add_cert_subject(const sgi_tls *tls, sgi_buf *into)
{
    char *text;
    X509 *cert = SSL_get0_peer_certificate(tls->ssl);
    if (!cert || SSL_get_verify_result(tls->ssl) != X509_V_OK)
        return false;
    BIO *bio = BIO_new(BIO_s_mem());
    unsigned long flags = XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB;
    bool ok = bio && X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0, flags) >= 0;
    if (ok) {
        long len = BIO_get_mem_data(bio, &text);
        sgi_buf_add(into, text, len > 0 ? (size_t)len : 0);
        ok = len > 0;
    }
    BIO_free(bio);
    return ok && !into->failed;
}
