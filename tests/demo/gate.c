#include "gate.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int open_gate(const char *store, int flags)
{
    char path[4300];
    snprintf(path, sizeof path, "%s.gate", store);
    return open(path, flags | O_CLOEXEC, 0600);
}

int gate_make(const char *store)
{
    int gate = open_gate(store, O_WRONLY | O_CREAT | O_TRUNC);
    if (gate >= 0 && !gate_set(gate, 0)) {
        close(gate);
        return -1;
    }
    return gate;
}

bool gate_set(int gate, uint64_t lines)
{
    return pwrite(gate, &lines, sizeof lines, 0) == (ssize_t)sizeof lines;
}

int gate_find(const char *store)
{
    return open_gate(store, O_RDONLY);
}

uint64_t gate_get(int gate)
{
    uint64_t lines;
    if (gate < 0 || pread(gate, &lines, sizeof lines, 0) != (ssize_t)sizeof lines)
        return UINT64_MAX;
    return lines;
}
