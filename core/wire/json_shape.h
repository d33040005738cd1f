/* What the JSON reader remembers of earlier texts: their shapes. A peer sends messages
 * that differ in a few values only, such as the id, a text or a number. The shape of such
 * messages is their text with a hole at each value that differs. A text that has a
 * remembered shape is compared with the shape's bytes, and only the values at its holes
 * are read. The result is the same as that of reading all of it.
 *
 * That is right because the bytes outside of the holes come from a text that was
 * accepted, and each hole holds one value in both texts. A hole is never a key, so the
 * keys of every object outside of the holes are those of the accepted text. It is never
 * the outermost object nor a member with the name of a part (sgi_json_part) at the place
 * of a part. So the same members and the same parts are recorded.
 *
 * All texts of one memory are read with the same names of parts and the same maximum
 * depth. Only json_read.c and json_shape.c look into the structs. */
#ifndef SGI_JSON_SHAPE_H
#define SGI_JSON_SHAPE_H

#include "wire/json_read.h"

/* maximum number of bytes of a shape, where a hole takes one byte */
#define SGI_JSON_SHAPE_BYTES 1024
/* A longer text is not remembered. (It can still have a shape that is remembered.) */
#define SGI_JSON_SHAPE_TEXT 8192
#define SGI_JSON_SHAPE_HOLES 16
/* Holes are at most this deep. */
#define SGI_JSON_SHAPE_DEPTH 8
/* A string or a number with more bytes is a hole from the start: it will hardly be
 * repeated. */
#define SGI_JSON_SHAPE_STRING 64
#define SGI_JSON_SHAPE_MEMBERS 16
#define SGI_JSON_SHAPE_PARTS 2
/* number of shapes of one memory */
#define SGI_JSON_SHAPES 4
/* The reader tries one shape after the other. It stops trying when a shape has not fitted
 * and this many bytes of the text were read for it. A long text therefore costs at most
 * twice as much as reading it. */
#define SGI_JSON_SHAPE_TRIED 4096

/* A position in the bytes of a shape. In a text with this shape, the lengths of the holes
 * before the position are added. */
typedef struct sgi_json_place {
    uint16_t at;
    uint16_t holes; /* number of holes that begin before the position */
} sgi_json_place;

typedef struct sgi_json_shape_member {
    sgi_json_place key; /* the position after the opening quote */
    uint16_t key_len;
    bool escaped;
    sgi_json_place value, end;
} sgi_json_shape_member;

typedef struct sgi_json_shape_part {
    sgi_json_place start, end; /* of the object; equal = there is no such part */
    size_t count;
    sgi_json_shape_member members[SGI_JSON_PART_MEMBERS];
} sgi_json_shape_part;

typedef struct sgi_json_hole {
    uint16_t at;    /* the position of the hole's byte */
    uint16_t depth; /* number of containers around the hole */
} sgi_json_hole;

typedef struct sgi_json_shape {
    size_t len; /* 0 = this slot is free */
    size_t hole_count;
    sgi_json_hole holes[SGI_JSON_SHAPE_HOLES]; /* in the order of the text */
    size_t count;
    sgi_json_shape_member members[SGI_JSON_SHAPE_MEMBERS];
    sgi_json_shape_part parts[SGI_JSON_SHAPE_PARTS];
    /* the text, with the digit 0 at each hole: it stays JSON, which `learn` walks */
    char bytes[SGI_JSON_SHAPE_BYTES];
} sgi_json_shape;

struct sgi_json_shapes {
    sgi_json_shape list[SGI_JSON_SHAPES];
    uint8_t order[SGI_JSON_SHAPES]; /* indices of `list`, the newest shape first */
    uint32_t missed; /* number of texts in a row that had none of the shapes */
    /* Learning a shape costs more than reading the text. A text that has a shape earns
     * one credit, and so does a text from which nothing is learned for want of credit. So
     * of texts that never repeat, every fifth is learned from. */
    uint32_t credit;
};

#define SGI_JSON_SHAPE_PRICE 4
#define SGI_JSON_SHAPE_CREDIT 64
/* A hole is a string, a number or a word at first. When more than this number of texts in
 * a row have had no shape, a hole can also be an object or an array. Messages whose
 * arguments have different members get a shape in this way. */
#define SGI_JSON_SHAPE_MISSED 4

void sgi_json_shapes_init(sgi_json_shapes *shapes);

/* The text has the shape number `number` of `order`. */
void sgi_json_shapes_hit(sgi_json_shapes *shapes, size_t number);

/* Learns from an accepted text that has none of the shapes. members, count: of the
 * outermost object, as they were recorded; trail: the parts that were recorded. */
void sgi_json_shapes_learn(sgi_json_shapes *shapes, sgi_str text,
                           const sgi_json_member *members, size_t count,
                           const sgi_json_part_names *trail);

/* Records the members and the parts of a text with this shape. shifts[k]: number of bytes
 * that the text has more than the shape before the hole number k. */
void sgi_json_shape_fill(const sgi_json_shape *shape, sgi_str text,
                         const size_t shifts[SGI_JSON_SHAPE_HOLES + 1],
                         sgi_json_member *members, size_t max,
                         const sgi_json_part_names *trail);

#endif
