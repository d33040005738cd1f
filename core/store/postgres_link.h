/* One connection to a PostgreSQL server. The connection runs one statement at a time,
 * each with a time limit. Only one thread at a time may use a connection. */
#ifndef SGI_POSTGRES_LINK_H
#define SGI_POSTGRES_LINK_H

#include "base/buf.h"
#include "store/postgres_library.h"

#define SGI_PG_ARGS_MAX 20
#define SGI_PG_FAULT 400

typedef struct sgi_pg_link {
    const char *url;
    /* a descriptor that ends every wait of the link when it becomes readable; -1 = no
     * such descriptor */
    int stop_fd;
    PGconn *conn; /* NULL = not connected */
    /* the reason why the link is not connected, or why a call failed */
    char fault[SGI_PG_FAULT];
} sgi_pg_link;

/* A statement and its arguments. The arguments are in PostgreSQL's binary form. */
typedef struct sgi_pg_call {
    sgi_buf sql;
    sgi_buf args[SGI_PG_ARGS_MAX];
    Oid types[SGI_PG_ARGS_MAX];
    bool nulls[SGI_PG_ARGS_MAX];
    int count;
} sgi_pg_call;

/* Returns the monotonic time in ms. The store uses this real clock and not the injected
 * clock, because its calls really wait. */
int64_t sgi_pg_now(void);

void sgi_pg_link_init(sgi_pg_link *link, const char *url, int stop_fd);
/* Connects to a server that accepts writes. deadline: a time of sgi_pg_now. Returns
 * SEGUE_E_UNSUPPORTED for a server that is too old, and SEGUE_E_STORE after other
 * failures; `fault` then has the reason. */
segue_status sgi_pg_link_open(sgi_pg_link *link, int64_t deadline);
void sgi_pg_link_close(sgi_pg_link *link);
static inline bool sgi_pg_link_is_up(const sgi_pg_link *link)
{
    return link->conn != NULL;
}
/* Runs the statement and waits for its result. The result can be an error; the caller
 * frees it with PQclear. When no result arrives in time, closes the connection and
 * returns NULL. */
PGresult *sgi_pg_link_execute(sgi_pg_link *link, const sgi_pg_call *call,
                              int64_t deadline);
/* Runs SQL text without arguments, which may have several statements. Returns the result
 * of the last statement, or of the first statement that failed. Otherwise the function
 * behaves like sgi_pg_link_execute. */
PGresult *sgi_pg_link_run(sgi_pg_link *link, const char *sql, int64_t deadline);
/* Takes the next notification that has arrived, without waiting. The caller frees *notify
 * with PQfreemem; NULL = no notification has arrived. Returns false when the connection
 * was lost; the function has then closed it. */
bool sgi_pg_link_poll(sgi_pg_link *link, PGnotify **notify);

/* ---- calls ---- */

void sgi_pg_call_init(sgi_pg_call *call, const sgi_mem *mem);
void sgi_pg_call_free(sgi_pg_call *call);
/* Begins a call of a statement. In the SQL text, "@" stands for the name of the schema
 * (see sgi_pg_add_sql). */
void sgi_pg_call_begin(sgi_pg_call *call, const char *sql, const char *schema);
bool sgi_pg_call_failed(const sgi_pg_call *call);
void sgi_pg_arg_bool(sgi_pg_call *call, bool value);
void sgi_pg_arg_int32(sgi_pg_call *call, int32_t value);
void sgi_pg_arg_int64(sgi_pg_call *call, int64_t value);
void sgi_pg_arg_text(sgi_pg_call *call, const char *text);
void sgi_pg_arg_bytes(sgi_pg_call *call, const void *bytes, size_t len);
void sgi_pg_arg_id(sgi_pg_call *call, const uint8_t *id);

typedef enum sgi_pg_array {
    SGI_PG_INT2S,
    SGI_PG_INT4S,
    SGI_PG_INT8S,
    SGI_PG_BYTES,
    SGI_PG_IDS
} sgi_pg_array;

/* Begins an array argument. The caller appends the elements to the returned buffer and
 * then ends the array. Several arrays may be filled at the same time. */
sgi_buf *sgi_pg_array_begin(sgi_pg_call *call, sgi_pg_array kind);
void sgi_pg_array_end(sgi_buf *array, size_t count);
void sgi_pg_add_int16(sgi_buf *array, int16_t value);
void sgi_pg_add_int32(sgi_buf *array, int32_t value);
void sgi_pg_add_int64(sgi_buf *array, int64_t value);
/* Adds bytes as an element of an array. bytes NULL and len SIZE_MAX: adds an SQL NULL. */
void sgi_pg_add_bytes(sgi_buf *array, const void *bytes, size_t len);

/* ---- results ---- */

static inline size_t sgi_pg_len(const PGresult *result, int row, int column)
{
    return (size_t)sgi_pq.PQgetlength(result, row, column);
}
int64_t sgi_pg_get_int64(const PGresult *result, int row, int column);
int32_t sgi_pg_get_int32(const PGresult *result, int row, int column);
bool sgi_pg_get_bool(const PGresult *result, int row, int column);

#endif
