/* A minimal user program, compiled and linked against an installed Segue, by CMake and by
 * pkg-config, shared and static. EXPECTED_VERSION is the version of the package. */
#include <stdio.h>
#include <string.h>

#include <segue/segue.h>
#include <segue/segue_auth.h>
#include <segue/segue_ext.h>
#include <segue/easy.h>

static int fail(const char *what)
{
    fprintf(stderr, "consumer: %s\n", what);
    return 1;
}

int main(void)
{
    if (strcmp(segue_version(), EXPECTED_VERSION) != 0)
        return fail("the library is of another version than its package");

    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_runtime *runtime = NULL;
    if (segue_runtime_new(&options, &runtime, NULL) != SEGUE_OK)
        return fail("segue_runtime_new");
    segue_transport *a = NULL, *b = NULL;
    segue_status status = segue_transport_pair(runtime, &a, &b);
    segue_transport_free(a);
    segue_transport_free(b);
    segue_runtime_free(runtime);
    return status == SEGUE_OK ? 0 : fail("segue_transport_pair");
}
