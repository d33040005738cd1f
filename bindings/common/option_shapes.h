/* The structs of options that the bindings fill from a dict or an object.
 * option_members.h has their members. */
#ifndef SEGUE_BINDINGS_OPTION_SHAPES_H
#define SEGUE_BINDINGS_OPTION_SHAPES_H

typedef enum option_shape {
    OPTIONS_RUNTIME,
    OPTIONS_SPAWN,
    OPTIONS_STORE,
    OPTIONS_SERVER,
    OPTIONS_ITEM,
    OPTIONS_SESSION,
    OPTIONS_REQUEST,
    OPTIONS_HTTP,
    OPTIONS_LISTEN,
    OPTIONS_OAUTH,
    OPTIONS_BEARER
} option_shape;

#endif
