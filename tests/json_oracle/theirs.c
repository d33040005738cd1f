/* Jansson's verdict on each document of a batch: 32 bits each, its error code, or 0 when
 * it accepted the document. Standard input is that of ours.c. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void write_verdict(uint32_t verdict)
{
    for (int shift = 0; shift < 32; shift += 8)
        putchar((int)(verdict >> shift & 255));
}

int main(void)
{
    const size_t flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    unsigned char bytes[4];
    while (fread(bytes, 1, sizeof bytes, stdin) == sizeof bytes) {
        size_t length = (size_t)bytes[0] | (size_t)bytes[1] << 8 |
                        (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
        char *text = malloc(length + 1);
        if (!text || fread(text, 1, length, stdin) != length)
            abort();
        json_error_t error;
        json_t *value = json_loadb(text, length, flags, &error);
        /* Code 0 means "unknown", which must not look like acceptance. */
        int code = json_error_code(&error);
        write_verdict(value ? 0 : code ? (uint32_t)code : 255);
        json_decref(value);
        free(text);
    }
    return ferror(stdout);
}
