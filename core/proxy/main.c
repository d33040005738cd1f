/* segue-proxy: a proxy between clients and MCP servers. core/docs/proxy.md is its
 * guide. */
#include "program.h"

int main(int argc, char **argv)
{
    return program_run(argc, argv, NULL);
}
