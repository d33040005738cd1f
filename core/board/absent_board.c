/* The task board, in a library that was built without it. */
#include "board/board.h"

bool sgi_board_is_there(void)
{
    return false;
}

const sgi_board_item *sgi_board_find(sgi_str name)
{
    (void)name;
    return NULL;
}

void sgi_board_keep_store(segue_store *store)
{
    (void)store;
}

void sgi_board_drop_store(segue_store *store)
{
    (void)store;
}

struct sgi_summary_cache *sgi_board_cache_new(const sgi_mem *mem)
{
    (void)mem;
    return NULL;
}

void sgi_board_cache_unref(struct sgi_summary_cache *cache)
{
    (void)cache;
}

bool sgi_board_request_init(sgi_board_request *request, const sgi_mem *mem,
                            const sgi_board_item *item, segue_store *store,
                            struct sgi_summary_cache *cache, sgi_str query, sgi_str body)
{
    (void)cache;
    (void)request;
    (void)mem;
    (void)item;
    (void)store;
    (void)query;
    (void)body;
    return false;
}

void sgi_board_request_free(sgi_board_request *request)
{
    (void)request;
}

void sgi_board_answer(sgi_board_request *request)
{
    (void)request;
}
