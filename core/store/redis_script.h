/* What Redis does for the store, in Lua: each script is atomic and checks before it
 * changes anything. redis_script.c has the keys. */
#ifndef SGI_REDIS_SCRIPT_H
#define SGI_REDIS_SCRIPT_H

#include "base/buf.h"

typedef enum sgi_redis_script {
    SGI_REDIS_HISTORY,
    SGI_REDIS_OPEN,
    SGI_REDIS_COMMIT,
    SGI_REDIS_FIND,
    SGI_REDIS_LIST,
    SGI_REDIS_CLAIM,
    SGI_REDIS_UNCLAIM,
    SGI_REDIS_PURGE,
    SGI_REDIS_FOLLOW,
    SGI_REDIS_POST,
    SGI_REDIS_LETTERS,
    SGI_REDIS_BEAT,
    SGI_REDIS_BYE,
    SGI_REDIS_SCRIPTS
} sgi_redis_script;

#define SGI_REDIS_FORMAT "1"

/* Parts of one, of redis_script_commit.c. */
extern const char sgi_redis_lua_haste[];
extern const char sgi_redis_lua_check[];
extern const char sgi_redis_lua_room[];
extern const char sgi_redis_lua_apply[];
extern const char sgi_redis_lua_commit[];

/* Appends a SCRIPT LOAD command for each, in the order of the enum. */
void sgi_redis_scripts_add(sgi_buf *commands);

#endif
