/* The forwarded commands that wait in memory, for all listeners of one store handle. A
 * forwarded command is meant for the owner of an operation. The functions are called
 * under the lock of listeners.c. */
#ifndef SGI_STORE_COMMANDS_H
#define SGI_STORE_COMMANDS_H

#include "base/thresholds.h"
#include "base/base.h"

/* Limits of the waiting commands: their number per operation, their number in all, and
 * their bytes in all. */
#define SGI_STORE_COMMANDS_EACH SGI_THRESHOLD(store_commands_each)
#define SGI_STORE_COMMANDS_MAX SGI_THRESHOLD(store_commands_max)
#define SGI_STORE_COMMANDS_BYTES (64 * 1024 * 1024)

typedef struct sgi_store_command {
    TAILQ_ENTRY(sgi_store_command) link;
    uint64_t place; /* position of the command in the order of delivery */
    segue_store_news news;
    char data[];
} sgi_store_command;

typedef struct sgi_store_commands {
    const sgi_mem *mem;
    /* the waiting commands, sorted by `place` */
    TAILQ_HEAD(sgi_store_command_list, sgi_store_command) list;
    size_t count;
    size_t bytes;
    uint64_t last_place;
    /* the number that the newest command got in this process; 0 = no command yet */
    uint64_t last_number;
} sgi_store_commands;

void sgi_store_commands_init(sgi_store_commands *commands, const sgi_mem *mem);
void sgi_store_commands_free(sgi_store_commands *commands);

bool sgi_store_commands_has_room(const sgi_store_commands *commands);
/* Appends a copy of a forwarded command. Returns SEGUE_E_NOMEM when out of memory. */
segue_status sgi_store_commands_add(sgi_store_commands *commands,
                                    const segue_store_news *news);
/* Gives a new forwarded command its number and appends a copy of the command. When the
 * list is full, the function first drops the oldest commands that every listener has
 * received (place <= received). Returns SEGUE_E_LIMIT when no command can be dropped, or
 * when too many commands wait for the same operation. */
segue_status sgi_store_commands_post(sgi_store_commands *commands,
                                     const segue_store_news *news, uint64_t received);
/* Removes the forwarded commands of an operation with numbers up to `number`. */
void sgi_store_commands_remove(sgi_store_commands *commands, const uint8_t *id,
                               uint64_t number);
/* Removes all forwarded commands that every listener has received (place <= received). */
void sgi_store_commands_trim(sgi_store_commands *commands, uint64_t received);
/* Moves the forwarded commands of an operation to the end of the list, so that all
 * listeners receive these commands again. Returns false when no command waits for the
 * operation. */
bool sgi_store_commands_redeliver(sgi_store_commands *commands, const uint8_t *id);
/* Returns the first forwarded command after the position `place`, or NULL when there is
 * no such command. */
const sgi_store_command *sgi_store_commands_next(const sgi_store_commands *commands,
                                                 uint64_t place);

#endif
