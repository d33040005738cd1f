/* TLS to a PostgreSQL server, and settings from the PG* variables of the environment.
 * label: threads */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/certificates.h"
#include "support/postgres_server.h"
#include "support/server_process.h"
#include "support/store_kit.h"

#include <cmocka.h>

#define PATIENCE_MS 120000 /* for slow machines */

static postgres_server *server;
static char right[96]; /* path of the authority that signed the server's certificate */
static char wrong[96]; /* path of another authority */

/* ---- the server ---- */

static const char *path_of(const char *name)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/%s", postgres_server_directory(server), name);
    return path;
}

static void make_certificates(void)
{
    test_cert authority, stranger, cert;
    char key[96];
    snprintf(right, sizeof right, "%s", path_of("right.crt"));
    snprintf(wrong, sizeof wrong, "%s", path_of("wrong.crt"));
    snprintf(key, sizeof key, "%s", path_of("server.key"));
    test_cert_make(&authority, "authority", TEST_KEY_EC, NULL);
    test_cert_make(&stranger, "stranger", TEST_KEY_EC, NULL);
    test_cert_make(&cert, "server", TEST_KEY_EC, &authority);
    test_cert_save(&authority, right, NULL);
    test_cert_save(&stranger, wrong, NULL);
    test_cert_save(&cert, path_of("server.crt"), key);
    test_cert_free(&authority);
    test_cert_free(&stranger);
    test_cert_free(&cert);
}

/* Only the user "secure" needs TLS and a password. */
static bool write_rules(void)
{
    static const char rules[] = "local all all trust\n"
                                "hostssl all secure 127.0.0.1/32 scram-sha-256\n"
                                "host all secure 127.0.0.1/32 reject\n"
                                "host all all 127.0.0.1/32 trust\n";
    FILE *file = fopen(path_of("data/pg_hba.conf"), "w");
    if (!file)
        return false;
    fputs(rules, file);
    return fclose(file) == 0;
}

static bool set_up(void)
{
    make_certificates();
    bool ok = postgres_server_give_file(path_of("server.crt")) &&
              postgres_server_give_file(path_of("server.key")) && write_rules();
    ok = ok && !postgres_server_do(server, "ALTER SYSTEM SET ssl_cert_file = '%s'",
                                   path_of("server.crt"));
    ok = ok && !postgres_server_do(server, "ALTER SYSTEM SET ssl_key_file = '%s'",
                                   path_of("server.key"));
    ok = ok && !postgres_server_do(server, "ALTER SYSTEM SET ssl = on");
    ok = ok && !postgres_server_do(server, "CREATE ROLE secure LOGIN PASSWORD 'secret'; "
                                           "GRANT CREATE ON DATABASE postgres TO secure");
    postgres_server_signal(server, SIGINT);
    return ok && postgres_server_again(server);
}

static int clear(void **state)
{
    (void)state;
    return postgres_server_do(server, "DROP SCHEMA IF EXISTS segue CASCADE") < 0;
}

/* ---- opening ---- */

static segue_status open_store(const char *url, segue_store **out, char message[512])
{
    segue_store_options options = {.struct_size = sizeof options,
                                   .timeout_ms = PATIENCE_MS};
    *message = 0;
    return sgi_store_postgres_new(url, &options, out, message, 512);
}

/* The store opens, and both of its connections use TLS or none does. */
static void expect_open(const char *url, bool tls, const char *user)
{
    char message[512];
    segue_store *store = NULL;
    if (open_store(url, &store, message))
        fail_msg("%s: %s", url, message);
    test_must_create(store, 1);
    assert_int_equal(postgres_server_do(server,
                                        "SELECT count(*) FROM pg_stat_ssl JOIN "
                                        "pg_stat_activity USING (pid) WHERE ssl = %s AND "
                                        "application_name = 'segue' AND usename = '%s'",
                                        tls ? "true" : "false", user),
                     2);
    sgi_store_unref(store);
    clear(NULL);
}

/* The store does not open. The message has both texts, and not the password. */
static void expect_refused(const char *url, const char *words, const char *more)
{
    char message[512];
    segue_store *store = NULL;
    assert_int_equal(open_store(url, &store, message), SEGUE_E_STORE);
    if (!strstr(message, words) || !strstr(message, more))
        fail_msg("%s: %s", url, message);
    assert_null(strstr(message, "secret"));
}

static const char *url_with(const char *options, const char *value)
{
    static char url[512];
    snprintf(url, sizeof url, "%s?%s%s", postgres_server_url(server), options, value);
    return url;
}

/* ---- TLS ---- */

static void tls_is_used_as_the_url_says(void **state)
{
    (void)state;
    expect_open(url_with("sslmode=", "disable"), false, "segue");
    expect_open(url_with("sslmode=", "require"), true, "segue");
    expect_open(url_with("sslmode=verify-full&sslrootcert=", right), true, "segue");
}

static void certificate_of_a_stranger_is_refused(void **state)
{
    (void)state;
    expect_refused(url_with("sslmode=verify-full&sslrootcert=", wrong), "127.0.0.1",
                   "certificate verify failed");
    expect_refused(url_with("sslmode=verify-full&sslrootcert=", "/nowhere.crt"),
                   "/nowhere.crt", "root certificate");
}

static void certificate_for_another_host_is_refused(void **state)
{
    (void)state;
    char url[512];
    snprintf(url, sizeof url,
             "postgresql://segue@other.test:%d/postgres?hostaddr=127.0.0.1&"
             "sslmode=verify-full&sslrootcert=%s",
             postgres_server_port(server), right);
    expect_refused(url, "server certificate", "does not match host name \"other.test\"");
}

/* With several hosts the message has the reason of each. */
static void each_host_has_its_reason(void **state)
{
    (void)state;
    char url[512];
    snprintf(url, sizeof url,
             "postgresql://segue:secret@127.0.0.1:%d,127.0.0.1:%d/postgres?"
             "sslmode=verify-full&sslrootcert=%s",
             server_process_free_port(), postgres_server_port(server), wrong);
    expect_refused(url, "Connection refused; ", "certificate verify failed");
}

static void server_without_tls_is_refused(void **state)
{
    (void)state;
    postgres_server_do(server, "ALTER SYSTEM SET ssl = off");
    postgres_server_signal(server, SIGINT);
    assert_true(postgres_server_again(server));
    expect_refused(url_with("sslmode=", "require"), "127.0.0.1", "SSL");
    postgres_server_do(server, "ALTER SYSTEM SET ssl = on");
    postgres_server_signal(server, SIGINT);
    assert_true(postgres_server_again(server));
}

/* ---- the environment ---- */

static const char *const VARIABLES[] = {"PGHOST",     "PGPORT",    "PGUSER",
                                        "PGDATABASE", "PGSSLMODE", "PGSSLROOTCERT",
                                        "PGPASSWORD", NULL};

static int forget_variables(void **state)
{
    (void)state;
    for (size_t i = 0; VARIABLES[i]; i++)
        unsetenv(VARIABLES[i]);
    return 0;
}

static int set_variables(void **state)
{
    char port[8];
    snprintf(port, sizeof port, "%d", postgres_server_port(server));
    const char *const values[] = {"127.0.0.1",   port,  "secure", "postgres",
                                  "verify-full", right, "secret"};
    for (size_t i = 0; VARIABLES[i]; i++)
        setenv(VARIABLES[i], values[i], 1);
    return clear(state);
}

static void environment_completes_the_url(void **state)
{
    (void)state;
    expect_open("postgresql://", true, "secure");
    expect_open("postgresql:///postgres?schema=segue", true, "secure");
}

static void url_precedes_the_environment(void **state)
{
    (void)state;
    expect_open("postgresql://segue@?sslmode=disable", false, "segue");
}

static void wrong_variables_are_refused(void **state)
{
    (void)state;
    setenv("PGSSLROOTCERT", wrong, 1);
    expect_refused("postgresql://", "127.0.0.1", "certificate verify failed");
    set_variables(state);
    setenv("PGPASSWORD", "a secret that is wrong", 1);
    expect_refused("postgresql://", "127.0.0.1", "password authentication failed");
    set_variables(state);
    setenv("PGSSLMODE", "disable", 1);
    expect_refused("postgresql://", "127.0.0.1", "no encryption");
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(tls_is_used_as_the_url_says, clear),
        cmocka_unit_test(certificate_of_a_stranger_is_refused),
        cmocka_unit_test(certificate_for_another_host_is_refused),
        cmocka_unit_test(each_host_has_its_reason),
        cmocka_unit_test(server_without_tls_is_refused),
        cmocka_unit_test_setup_teardown(environment_completes_the_url, set_variables,
                                        forget_variables),
        cmocka_unit_test_setup_teardown(url_precedes_the_environment, set_variables,
                                        forget_variables),
        cmocka_unit_test_setup_teardown(wrong_variables_are_refused, set_variables,
                                        forget_variables),
    };
    if (!postgres_server_start(NULL, &server) || !set_up())
        return 1;
    int failures = cmocka_run_group_tests(cases, NULL, NULL);
    postgres_server_stop(server);
    return failures;
}
