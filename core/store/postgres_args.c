/* The arguments of calls and the values of results, in PostgreSQL's binary form: numbers
 * are big-endian, bytes are unchanged. An array begins with a head (number of dimensions,
 * whether it has NULLs, type of its elements, number of elements, first index). Then
 * follow the elements, each after its length. */
#include "store/postgres_link.h"

#include "store/postgres_schema.h"

/* type numbers from PostgreSQL's pg_type.dat, which never change */
#define BOOL_TYPE 16
#define BYTEA_TYPE 17
#define INT8_TYPE 20
#define INT2_TYPE 21
#define INT4_TYPE 23
#define TEXT_TYPE 25
#define UUID_TYPE 2950

#define EMPTY_ARRAY 12
#define ARGS_KEPT ((size_t)64 * 1024)

static const struct {
    Oid array, element;
} ARRAYS[] = {[SGI_PG_INT2S] = {1005, INT2_TYPE},
              [SGI_PG_INT4S] = {1007, INT4_TYPE},
              [SGI_PG_INT8S] = {1016, INT8_TYPE},
              [SGI_PG_BYTES] = {1001, BYTEA_TYPE},
              [SGI_PG_IDS] = {2951, UUID_TYPE}};

static void put(char *to, uint64_t value, int size)
{
    for (int i = size - 1; i >= 0; i--, value >>= 8)
        to[i] = (char)(uint8_t)value;
}

static uint64_t get(const char *from, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | (uint8_t)from[i];
    return value;
}

static void add_number(sgi_buf *to, uint64_t value, int size)
{
    char bytes[8];
    put(bytes, value, size);
    sgi_buf_add(to, bytes, (size_t)size);
}

/* ---- calls ---- */

void sgi_pg_call_init(sgi_pg_call *call, const sgi_mem *mem)
{
    sgi_buf_init(&call->sql, mem);
    for (int i = 0; i < SGI_PG_ARGS_MAX; i++)
        sgi_buf_init(&call->args[i], mem);
}

void sgi_pg_call_free(sgi_pg_call *call)
{
    sgi_buf_free(&call->sql);
    for (int i = 0; i < SGI_PG_ARGS_MAX; i++)
        sgi_buf_free(&call->args[i]);
}

void sgi_pg_call_begin(sgi_pg_call *call, const char *sql, const char *schema)
{
    call->count = 0;
    sgi_buf_reset(&call->sql, ARGS_KEPT);
    sgi_pg_add_sql(&call->sql, sql, schema);
    sgi_buf_terminate(&call->sql);
}

bool sgi_pg_call_failed(const sgi_pg_call *call)
{
    bool failed = call->sql.failed;
    for (int i = 0; i < call->count; i++)
        failed = failed || call->args[i].failed;
    return failed;
}

static sgi_buf *next_arg(sgi_pg_call *call, Oid type)
{
    int at = call->count++;
    call->types[at] = type;
    call->nulls[at] = false;
    sgi_buf_reset(&call->args[at], ARGS_KEPT);
    return &call->args[at];
}

void sgi_pg_arg_bool(sgi_pg_call *call, bool value)
{
    add_number(next_arg(call, BOOL_TYPE), value, 1);
}

void sgi_pg_arg_int32(sgi_pg_call *call, int32_t value)
{
    add_number(next_arg(call, INT4_TYPE), (uint64_t)value, 4);
}

void sgi_pg_arg_int64(sgi_pg_call *call, int64_t value)
{
    add_number(next_arg(call, INT8_TYPE), (uint64_t)value, 8);
}

void sgi_pg_arg_text(sgi_pg_call *call, const char *text)
{
    sgi_buf_add(next_arg(call, TEXT_TYPE), text, strlen(text));
}

void sgi_pg_arg_bytes(sgi_pg_call *call, const void *bytes, size_t len)
{
    sgi_buf_add(next_arg(call, BYTEA_TYPE), bytes, len);
}

void sgi_pg_arg_id(sgi_pg_call *call, const uint8_t *id)
{
    sgi_buf_add(next_arg(call, UUID_TYPE), id, SEGUE_STORE_ID_SIZE);
}

sgi_buf *sgi_pg_array_begin(sgi_pg_call *call, sgi_pg_array kind)
{
    sgi_buf *array = next_arg(call, ARRAYS[kind].array);
    add_number(array, 1, 4);
    add_number(array, kind == SGI_PG_BYTES, 4);
    add_number(array, ARRAYS[kind].element, 4);
    add_number(array, 0, 4);
    add_number(array, 1, 4);
    return array;
}

void sgi_pg_array_end(sgi_buf *array, size_t count)
{
    if (array->failed)
        return;
    if (count) {
        put(array->p + 12, count, 4);
    } else {
        put(array->p, 0, 4);
        sgi_buf_shorten(array, EMPTY_ARRAY);
    }
}

void sgi_pg_add_int16(sgi_buf *array, int16_t value)
{
    add_number(array, 2, 4);
    add_number(array, (uint64_t)value, 2);
}

void sgi_pg_add_int32(sgi_buf *array, int32_t value)
{
    add_number(array, 4, 4);
    add_number(array, (uint64_t)value, 4);
}

void sgi_pg_add_int64(sgi_buf *array, int64_t value)
{
    add_number(array, 8, 4);
    add_number(array, (uint64_t)value, 8);
}

void sgi_pg_add_bytes(sgi_buf *array, const void *bytes, size_t len)
{
    if (len == SIZE_MAX) {
        add_number(array, UINT32_MAX, 4);
        return;
    }
    add_number(array, len, 4);
    sgi_buf_add(array, bytes, len);
}

/* ---- results ---- */

int64_t sgi_pg_get_int64(const PGresult *result, int row, int column)
{
    return (int64_t)get(sgi_pq.PQgetvalue(result, row, column), 8);
}

int32_t sgi_pg_get_int32(const PGresult *result, int row, int column)
{
    return (int32_t)get(sgi_pq.PQgetvalue(result, row, column), 4);
}

bool sgi_pg_get_bool(const PGresult *result, int row, int column)
{
    return *sgi_pq.PQgetvalue(result, row, column) != 0;
}
