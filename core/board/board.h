/* The task board: a web page that shows the operations of a store, and the requests by
 * which the page reads the store and changes it (core/docs/board.md). This room knows no
 * HTTP: a listener finds the item that a path names (transport/http_route.c), and answers
 * with the file of the item, or lets the helper of the runtime answer the request
 * (transport/http_board.c).
 *
 * Each answer is bounded by the thresholds board_..., whatever the store has. */
#ifndef SGI_BOARD_H
#define SGI_BOARD_H

#include "base/buf.h"

#include <segue/segue_ext.h>

typedef struct sgi_board_request sgi_board_request;

/* What is at a path below that of the board. */
typedef struct sgi_board_item {
    const char *name; /* the path behind that of the board, such as "api/tasks" */
    enum {
        SGI_BOARD_FILE,  /* a part of the page, which has no data of a store */
        SGI_BOARD_ABOUT, /* what the listener says about the board */
        SGI_BOARD_READ,
        SGI_BOARD_CHANGE /* the request is a POST */
    } kind;
    const char *type; /* the media type of a file */
    sgi_str text;     /* the bytes of a file */
    void (*answer)(sgi_board_request *request);
} sgi_board_item;

/* A request about a store, and its answer. */
struct sgi_board_request {
    const sgi_board_item *item;
    segue_store *store;              /* a counted reference */
    struct sgi_summary_cache *cache; /* the same; may be NULL */
    sgi_buf query;                   /* the query of the URL */
    sgi_buf body;
    /* the answer is about the operations of this principal, given by its digest, alone */
    bool is_personal;
    uint8_t principal[SEGUE_STORE_HASH_SIZE];
    bool is_redacted; /* the answer lacks what clients and tools have said */
    int32_t status;   /* the status of the answer, as in HTTP */
    sgi_buf json;     /* the answer */
};

/* False when the library was built without the board. */
bool sgi_board_is_there(void);
/* Returns the item with this name, or NULL. The page itself has an empty name. */
const sgi_board_item *sgi_board_find(sgi_str name);

/* Add and drop a reference to a store, for a listener. store may be NULL. */
void sgi_board_keep_store(segue_store *store);
void sgi_board_drop_store(segue_store *store);

/* What a listener keeps of its stores between requests; NULL when out of memory, which a
 * request does without. Any thread may use mem. */
struct sgi_summary_cache *sgi_board_cache_new(const sgi_mem *mem);
void sgi_board_cache_unref(struct sgi_summary_cache *cache);

/* Fills a request. Returns false when out of memory; the request is to be freed in
 * either case. A lock of the caller protects the count of references of the cache:
 * requests are made and freed under it. Memory of the request comes from `mem`, which any
 * thread may use. */
bool sgi_board_request_init(sgi_board_request *request, const sgi_mem *mem,
                            const sgi_board_item *item, segue_store *store,
                            struct sgi_summary_cache *cache, sgi_str query, sgi_str body);
void sgi_board_request_free(sgi_board_request *request);
/* Answers the request; drops its reference to the store. May block. Any thread may call
 * the function. */
void sgi_board_answer(sgi_board_request *request);

/* ---- shared by the files of this folder ---- */

/* Finds a parameter of the query and decodes it. Returns false when it is missing, or
 * does not fit. */
bool sgi_board_parameter(const sgi_board_request *request, const char *name, char *to,
                         size_t size);
/* Makes the answer the error of a status that is not SEGUE_OK. */
void sgi_board_fail(sgi_board_request *request, segue_status status);

/* The digest of the only principal whose operations the caller sees; NULL = all. */
const uint8_t *sgi_board_principal(const sgi_board_request *request);
void sgi_board_list_tasks(sgi_board_request *request); /* board_tasks.c */

/* The parts of the page (board_files.c, which the build makes from core/board/page). */
extern const sgi_board_item sgi_board_files[];
extern const size_t sgi_board_file_count;

#endif
