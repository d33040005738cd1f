/* The two sequences are aligned with as few losses, duplicates and alterations as
 * possible: the edit distance, with the three kinds counted separately. The segment
 * numbers of client and server are not used, so that a wrong number cannot hide a wrong
 * text.
 *
 * The common part at either end is set aside first; it is nearly everything. Of the rest
 * only two rows of the table are kept. A rest too large for that (both texts differ
 * everywhere) is compared position by position, which reports too many differences rather
 * than too few. */
#include "compare.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_TABLE ((size_t)25 * 1000 * 1000)

typedef struct cell {
    uint32_t cost;
    uint32_t lost;
    uint32_t duplicated;
    uint32_t altered;
} cell;

static bool same_line(const line *a, const line *b)
{
    return a->len == b->len && memcmp(a->p, b->p, a->len) == 0;
}

static cell cheapest(cell across, bool same, cell above, cell before)
{
    if (!same) {
        across.cost++;
        across.altered++;
    }
    above.cost++;
    above.lost++;
    before.cost++;
    before.duplicated++;
    if (above.cost < across.cost)
        across = above;
    return before.cost < across.cost ? before : across;
}

/* Rows are the lines that were sent, columns those that arrived. */
static bool align(const line *sent, size_t rows, const line *arrived, size_t columns,
                  comparison *out)
{
    cell *row = calloc(columns + 1, sizeof *row);
    if (!row)
        return false;
    for (size_t c = 1; c <= columns; c++)
        row[c] = (cell){.cost = (uint32_t)c, .duplicated = (uint32_t)c};
    for (size_t r = 1; r <= rows; r++) {
        cell corner = row[0];
        row[0] = (cell){.cost = (uint32_t)r, .lost = (uint32_t)r};
        for (size_t c = 1; c <= columns; c++) {
            cell above = row[c];
            bool same = same_line(&sent[r - 1], &arrived[c - 1]);
            row[c] = cheapest(corner, same, above, row[c - 1]);
            corner = above;
        }
    }
    out->lost = row[columns].lost;
    out->duplicated = row[columns].duplicated;
    out->altered = row[columns].altered;
    free(row);
    return true;
}

static void compare_places(const line *sent, size_t rows, const line *arrived,
                           size_t columns, comparison *out)
{
    size_t common = rows < columns ? rows : columns;
    for (size_t i = 0; i < common; i++)
        out->altered += !same_line(&sent[i], &arrived[i]);
    out->lost = rows - common;
    out->duplicated = columns - common;
}

bool compare_texts(const text *sent, const text *arrived, comparison *out)
{
    size_t head = 0, rows = sent->count, columns = arrived->count;
    *out = (comparison){.segments = arrived->count};
    out->same_bytes = sent->len == arrived->len &&
                      (!sent->len || memcmp(sent->bytes, arrived->bytes, sent->len) == 0);
    while (head < rows && head < columns &&
           same_line(&sent->lines[head], &arrived->lines[head]))
        head++;
    while (rows > head && columns > head &&
           same_line(&sent->lines[rows - 1], &arrived->lines[columns - 1])) {
        rows--;
        columns--;
    }
    rows -= head;
    columns -= head;
    const line *from = sent->lines + head, *to = arrived->lines + head;
    if (!rows || columns <= LARGEST_TABLE / rows)
        return align(from, rows, to, columns, out);
    compare_places(from, rows, to, columns, out);
    return true;
}
