/* Where the OpenSSL of a bundled build looks for the certificates of authorities when
 * neither SSL_CERT_FILE nor its own default has them. Its default is the file
 * /etc/ssl/cert.pem and the directory /etc/ssl/certs, as on Debian, Arch and Alpine. The
 * linker sends calls of X509_get_default_cert_file to __wrap_X509_get_default_cert_file
 * (core/cmake/bundled.cmake). */
#include <stddef.h>
#include <unistd.h>

const char *__real_X509_get_default_cert_file(void);
const char *__wrap_X509_get_default_cert_file(void);

const char *__wrap_X509_get_default_cert_file(void)
{
    static const char *const places[] = {
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, RHEL */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL 7 and later */
        "/etc/ssl/ca-bundle.pem",                            /* openSUSE */
    };
    const char *own = __real_X509_get_default_cert_file();
    if (!access(own, R_OK))
        return own;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!access(places[i], R_OK))
            return places[i];
    }
    return own;
}
