/* Runs a fuzz target over stored inputs, without a fuzzer: each argument is a file, or
 * a directory whose files are inputs. So every stored input is part of ordinary test
 * runs, under any compiler and sanitizer.
 *
 * A run over nothing fails, because a missing corpus must not look like a passing
 * test. An input is copied to a block of exactly its size, so that a read past its end
 * is seen. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static int replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size);
    int ok = file && (data || !size) && fread(data, 1, size, file) == size;
    if (ok)
        LLVMFuzzerTestOneInput(data, size);
    else
        fprintf(stderr, "%s: cannot be read\n", path);
    free(data);
    if (file)
        fclose(file);
    return ok ? 1 : -1;
}

/* Returns the number of inputs that ran, -1 when one could not be read. */
static int replay(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        fprintf(stderr, "%s: not there\n", path);
        return -1;
    }
    if (!S_ISDIR(status.st_mode))
        return replay_file(path, (size_t)status.st_size);
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    int ran = count < 0 ? -1 : 0;
    for (int i = 0; i < count; i++) {
        char child[4096];
        snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name);
        if (ran >= 0 && entries[i]->d_name[0] != '.') {
            int more = replay(child);
            ran = more < 0 ? -1 : ran + more;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return ran;
}

int main(int argc, char **argv)
{
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int ran = replay(argv[i]);
        if (ran < 0)
            return 1;
        total += ran;
    }
    printf("%d inputs\n", total);
    return total ? 0 : 1;
}
