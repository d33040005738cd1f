/* The Lua scripts that Redis runs for the store. Each script is atomic and checks
 * everything before it changes anything. redis_script.c describes the keys. */
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
    SGI_REDIS_COMMANDS,
    SGI_REDIS_BEAT,
    SGI_REDIS_BYE,
    SGI_REDIS_SCRIPTS
} sgi_redis_script;

/* The newest format that this library reads and writes. */
#define SGI_REDIS_FORMAT 2
#define SGI_REDIS_FORMAT_TEXT "2"
/* The format from which on records and entries have format 2 (core/docs/upgrades.md). */
#define SGI_REDIS_FORMAT_OF_RECORDS_2 2

/* The parts of the commit script, in redis_script_commit.c. */
extern const char sgi_redis_lua_haste[];
extern const char sgi_redis_lua_check[];
extern const char sgi_redis_lua_room[];
extern const char sgi_redis_lua_apply[];
extern const char sgi_redis_lua_commit[];

/* Appends one SCRIPT LOAD command per script, in the order of the enum. */
void sgi_redis_scripts_add(sgi_buf *commands);

#endif
