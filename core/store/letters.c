/* Letters in the order in which they are told, one list for all listeners; a listener is
 * a place in it. All are few (SGI_LETTERS_MAX), so they are found by walking.
 *
 * A letter stays until it is taken. For a store with letters of its own this is but the
 * way from the store to the listeners: it may go as soon as all have heard. */
#include "store/letters.h"

void sgi_letters_init(sgi_letters *letters, const sgi_mem *mem)
{
    *letters = (sgi_letters){.mem = mem};
    TAILQ_INIT(&letters->list);
}

static void drop_letter(sgi_letters *letters, sgi_letter *letter)
{
    TAILQ_REMOVE(&letters->list, letter, link);
    letters->count--;
    letters->bytes -= letter->news.data_len;
    sgi_release(letters->mem, letter, sizeof *letter + letter->news.data_len);
}

void sgi_letters_free(sgi_letters *letters)
{
    sgi_letter *letter;
    while ((letter = TAILQ_FIRST(&letters->list)))
        drop_letter(letters, letter);
}

static bool is_of(const sgi_letter *letter, const uint8_t *id)
{
    return !memcmp(letter->news.id, id, sizeof letter->news.id);
}

bool sgi_letters_has_room(const sgi_letters *letters)
{
    return letters->count < SGI_LETTERS_MAX && letters->bytes < SGI_LETTERS_BYTES;
}

segue_status sgi_letters_add(sgi_letters *letters, const segue_store_news *news)
{
    sgi_letter *letter = sgi_alloc(letters->mem, sizeof *letter + news->data_len);
    if (!letter)
        return SEGUE_E_NOMEM;
    letter->news = *news;
    letter->news.data = letter->data;
    letter->place = ++letters->last_place;
    if (news->data_len)
        memcpy(letter->data, news->data, news->data_len);
    TAILQ_INSERT_TAIL(&letters->list, letter, link);
    letters->count++;
    letters->bytes += news->data_len;
    return SEGUE_OK;
}

static size_t count_of(const sgi_letters *letters, const uint8_t *id)
{
    const sgi_letter *letter;
    size_t count = 0;
    TAILQ_FOREACH(letter, &letters->list, link)
        count += is_of(letter, id);
    return count;
}

segue_status sgi_letters_post(sgi_letters *letters, const segue_store_news *news,
                              uint64_t heard)
{
    if (count_of(letters, news->id) >= SGI_LETTERS_EACH)
        return SEGUE_E_LIMIT;
    while (!sgi_letters_has_room(letters)) {
        sgi_letter *oldest = TAILQ_FIRST(&letters->list);
        if (oldest->place > heard)
            return SEGUE_E_LIMIT;
        drop_letter(letters, oldest);
    }
    segue_store_news numbered = *news;
    numbered.number = letters->last_number + 1;
    segue_status status = sgi_letters_add(letters, &numbered);
    if (!status)
        letters->last_number++;
    return status;
}

void sgi_letters_take(sgi_letters *letters, const uint8_t *id, uint64_t number)
{
    sgi_letter *letter, *next;
    SGI_TAILQ_EACH(letter, &letters->list, link, next)
        if (is_of(letter, id) && letter->news.number <= number)
            drop_letter(letters, letter);
}

void sgi_letters_trim(sgi_letters *letters, uint64_t heard)
{
    sgi_letter *letter;
    while ((letter = TAILQ_FIRST(&letters->list)) && letter->place <= heard)
        drop_letter(letters, letter);
}

bool sgi_letters_retell(sgi_letters *letters, const uint8_t *id)
{
    uint64_t last = letters->last_place;
    sgi_letter *letter, *next;
    bool any = false;
    SGI_TAILQ_EACH(letter, &letters->list, link, next) {
        if (letter->place > last)
            break; /* what was moved already */
        if (!is_of(letter, id))
            continue;
        TAILQ_REMOVE(&letters->list, letter, link);
        letter->place = ++letters->last_place;
        TAILQ_INSERT_TAIL(&letters->list, letter, link);
        any = true;
    }
    return any;
}

const sgi_letter *sgi_letters_next(const sgi_letters *letters, uint64_t place)
{
    const sgi_letter *letter;
    TAILQ_FOREACH(letter, &letters->list, link)
        if (letter->place > place)
            return letter;
    return NULL;
}
