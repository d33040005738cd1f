/* A PostgreSQL server for tests in other languages: support/postgres_server.h as a
 * program.
 *
 *     postgres_server [ARGUMENT...]
 *
 * The arguments go to PostgreSQL ("-c fsync=on"). The program prints the URL of the
 * server in a line. The server ends with the input of the program. */
#include <stdio.h>

#include "support/postgres_server.h"

int main(int argc, char **argv)
{
    postgres_server *server;
    (void)argc;
    if (!postgres_server_start((const char *const *)argv + 1, &server))
        return 1;
    printf("%s\n", postgres_server_url(server));
    fflush(stdout);
    while (getchar() != EOF)
        ;
    postgres_server_stop(server);
    return 0;
}
