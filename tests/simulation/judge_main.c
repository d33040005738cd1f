/* Judges a history that it reads from its input: `judge < history`. The form of a line
 * is in judge.h. Ends with 0 when every promise was kept, and prints the first one that
 * was not. */
#include "judge.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    char line[400];
    judge *j = judge_new();
    long count = 0;
    const char *why = NULL;
    while (!why && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        count++;
        why = judge_line(j, line);
    }
    if (why)
        printf("line %ld: %s\n    %s\n", count, why, line);
    else
        printf("judge: %ld lines ok\n", count);
    judge_free(j);
    return why ? 1 : 0;
}
