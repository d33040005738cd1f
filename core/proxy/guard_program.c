/* segue-proxy-guard: the guard of a child process, as a program of its own. It needs only
 * the C library, so it takes little memory. A proxy has one guard for each program that
 * it runs. Without this file, segue-proxy --guard does the same. */
#include "guard.h"

int main(int argc, char **argv)
{
    return guard_run_arguments(argc - 1, argv + 1);
}
