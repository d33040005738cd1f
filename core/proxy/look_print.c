#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Escapes control characters, those of C1 (U+0080 to U+009F) included: a task may have
 * any name and content, and a terminal obeys control characters. */
void look_print_safely(FILE *out, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        bool is_c1 = c == 0xc2 && i + 1 < len && (unsigned char)p[i + 1] < 0xa0;
        if (c < ' ' || c == 0x7f || is_c1)
            fprintf(out, "\\x%02x", is_c1 ? (unsigned char)p[i + 1] : c);
        else
            putc(c, out);
        i += is_c1;
    }
}

static void print_string(json value)
{
    char *string = json_string(value);
    look_print_safely(stdout, string ? string : "-", string ? strlen(string) : 1);
    free(string);
}

static void print_number(json object, const char *name)
{
    json value = json_get(object, name);
    printf("%.*s", (int)value.n, value.n ? value.p : "");
}

void look_print_line(const char *line, size_t len)
{
    fwrite(line, 1, len, stdout);
    putchar('\n');
}

void look_print_summary(json task)
{
    print_string(json_get(task, "taskId"));
    printf("  ");
    print_string(json_get(task, "status"));
    printf("  ");
    print_string(json_get(task, "tool"));
    printf("  ");
    print_string(json_get(task, "createdAt"));
    printf("  ");
    print_number(task, "segments");
    printf(" segments  ");
    print_number(task, "bytes");
    printf(" bytes");
    if (json_get(task, "by").n) {
        printf("  by ");
        print_string(json_get(task, "by"));
    }
    if (json_get(task, "statusMessage").n) {
        printf("  ");
        print_string(json_get(task, "statusMessage"));
    }
    putchar('\n');
}

void look_print_entry(json entry)
{
    json data = json_get(entry, "data");
    print_number(entry, "seq");
    printf("  ");
    print_string(json_get(entry, "at"));
    printf("  ");
    print_string(json_get(entry, "kind"));
    printf("  ");
    if (!data.n)
        data = json_get(entry, "base64");
    look_print_safely(stdout, data.p, data.n);
    putchar('\n');
}

void look_write_time(char out[LOOK_TIME_SIZE], long long ago_s)
{
    time_t then = time(NULL) - (time_t)ago_s;
    struct tm parts;
    gmtime_r(&then, &parts);
    strftime(out, LOOK_TIME_SIZE, "%Y-%m-%dT%H:%M:%S.000Z", &parts);
}
