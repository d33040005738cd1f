/* The kinds of option structs that the bindings fill from a dict (Python) or an object
 * (Node). option_members.h lists the members of each struct. */
#ifndef SEGUE_BINDINGS_OPTION_SHAPES_H
#define SEGUE_BINDINGS_OPTION_SHAPES_H

typedef enum option_shape {
    OPTIONS_RUNTIME,
    OPTIONS_OBSERVER,
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
