#include "base/late_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/crypto.h"

/* The sanitizers do not allow this flag, and musl does not have it. */
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__) &&                          \
    !defined(__SANITIZE_THREAD__)
#define OWN_SYMBOLS_FIRST RTLD_DEEPBIND
#else
#define OWN_SYMBOLS_FIRST 0
#endif

_Static_assert(sizeof(void (*)(void)) == sizeof(void *),
               "dlsym returns pointers to functions as pointers to objects");

static bool fill(sgi_late_library *library, void *handle, char *why, size_t why_size)
{
    for (size_t i = 0; i < library->count; i++) {
        void *function = dlsym(handle, library->names[i]);
        if (!function) {
            snprintf(why, why_size, "%s has no function %s", library->file,
                     library->names[i]);
            return false;
        }
        memcpy((char *)library->table + i * sizeof function, &function, sizeof function);
    }
    return true;
}

/* A program such as Node has an OpenSSL of its own and exports its symbols. A library
 * that is loaded into it has to look into its own libraries first, or else it would mix
 * both. In other programs the usual order is kept, in which the program can replace
 * functions. */
static int search_order(void)
{
    void *program = dlopen(NULL, RTLD_NOW);
    void *theirs = program ? dlsym(program, "OpenSSL_version_num") : NULL;
    if (program)
        dlclose(program);
    return theirs && theirs != sgi_crypto_address() ? OWN_SYMBOLS_FIRST : 0;
}

static bool load(sgi_late_library *library, char *why, size_t why_size)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL | search_order());
    if (!handle) {
        snprintf(why, why_size, "the system cannot load %s: %s", library->file,
                 dlerror());
        return false;
    }
    if (fill(library, handle, why, why_size))
        return true;
    dlclose(handle);
    return false;
}

bool sgi_late_library_load(sgi_late_library *library, char *why, size_t why_size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    bool loaded = library->loaded = library->loaded || load(library, why, why_size);
    pthread_mutex_unlock(&lock);
    return loaded;
}
