/* Forwarded commands: commands that a server sends to the owner of an operation. All
 * commands of a store handle are in one list, in the order in which they are delivered.
 * Each listener remembers up to which position it has received the list. The list is
 * short (SGI_STORE_COMMANDS_MAX), so every search starts at its beginning.
 *
 * A store that keeps no commands relies on this list: a command stays in the list until
 * the owner of its operation has taken the command. A store that keeps commands itself
 * (vtable.post) needs the list only for delivery: a command leaves the list as soon as
 * all listeners have received the command. */
#include "store/commands.h"

void sgi_store_commands_init(sgi_store_commands *commands, const sgi_mem *mem)
{
    *commands = (sgi_store_commands){.mem = mem};
    TAILQ_INIT(&commands->list);
}

static void drop_letter(sgi_store_commands *commands, sgi_store_command *command)
{
    TAILQ_REMOVE(&commands->list, command, link);
    commands->count--;
    commands->bytes -= command->news.data_len;
    sgi_free(commands->mem, command, sizeof *command + command->news.data_len);
}

void sgi_store_commands_free(sgi_store_commands *commands)
{
    sgi_store_command *command;
    while ((command = TAILQ_FIRST(&commands->list)))
        drop_letter(commands, command);
}

static bool is_of(const sgi_store_command *command, const uint8_t *id)
{
    return !memcmp(command->news.id, id, sizeof command->news.id);
}

bool sgi_store_commands_has_room(const sgi_store_commands *commands)
{
    return commands->count < SGI_STORE_COMMANDS_MAX &&
           commands->bytes < SGI_STORE_COMMANDS_BYTES;
}

segue_status sgi_store_commands_add(sgi_store_commands *commands,
                                    const segue_store_news *news)
{
    sgi_store_command *command =
        sgi_alloc(commands->mem, sizeof *command + news->data_len);
    if (!command)
        return SEGUE_E_NOMEM;
    command->news = *news;
    command->news.data = command->data;
    command->place = ++commands->last_place;
    if (news->data_len)
        memcpy(command->data, news->data, news->data_len);
    TAILQ_INSERT_TAIL(&commands->list, command, link);
    commands->count++;
    commands->bytes += news->data_len;
    return SEGUE_OK;
}

static size_t count_of(const sgi_store_commands *commands, const uint8_t *id)
{
    const sgi_store_command *command;
    size_t count = 0;
    TAILQ_FOREACH(command, &commands->list, link)
        count += is_of(command, id);
    return count;
}

segue_status sgi_store_commands_post(sgi_store_commands *commands,
                                     const segue_store_news *news, uint64_t received)
{
    if (count_of(commands, news->id) >= SGI_STORE_COMMANDS_EACH)
        return SEGUE_E_LIMIT;
    while (!sgi_store_commands_has_room(commands)) {
        sgi_store_command *oldest = TAILQ_FIRST(&commands->list);
        if (oldest->place > received)
            return SEGUE_E_LIMIT;
        drop_letter(commands, oldest);
    }
    segue_store_news numbered = *news;
    numbered.number = commands->last_number + 1;
    segue_status status = sgi_store_commands_add(commands, &numbered);
    if (!status)
        commands->last_number++;
    return status;
}

void sgi_store_commands_remove(sgi_store_commands *commands, const uint8_t *id,
                               uint64_t number)
{
    sgi_store_command *command, *next;
    SGI_TAILQ_EACH(command, &commands->list, link, next)
        if (is_of(command, id) && command->news.number <= number)
            drop_letter(commands, command);
}

void sgi_store_commands_trim(sgi_store_commands *commands, uint64_t received)
{
    sgi_store_command *command;
    while ((command = TAILQ_FIRST(&commands->list)) && command->place <= received)
        drop_letter(commands, command);
}

bool sgi_store_commands_redeliver(sgi_store_commands *commands, const uint8_t *id)
{
    uint64_t last = commands->last_place;
    sgi_store_command *command, *next;
    bool any = false;
    SGI_TAILQ_EACH(command, &commands->list, link, next) {
        if (command->place > last)
            /* this loop has moved this command, and all commands after it, to the end */
            break;
        if (!is_of(command, id))
            continue;
        TAILQ_REMOVE(&commands->list, command, link);
        command->place = ++commands->last_place;
        TAILQ_INSERT_TAIL(&commands->list, command, link);
        any = true;
    }
    return any;
}

const sgi_store_command *sgi_store_commands_next(const sgi_store_commands *commands,
                                                 uint64_t place)
{
    const sgi_store_command *command;
    TAILQ_FOREACH(command, &commands->list, link)
        if (command->place > place)
            return command;
    return NULL;
}
