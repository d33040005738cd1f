/* What PostgreSQL alone does with the segments of streams: one prepared INSERT for each,
 * into the same table as the PostgreSQL store's log, in pipelines of BATCH that are one
 * transaction each. The rows go to TASKS logs in turn. Each pipeline is awaited before
 * the next. With --store the same rows go through the PostgreSQL store, one commit for
 * each batch.
 *
 *   bench_pipeline [--cpu N] [--store] URL ROWS BATCH TASKS */
#include "bench.h"

#include <arpa/inet.h>
#include <endian.h>

#include <libpq-fe.h>

#include "support/store_kit.h"

#define SEGMENT "{\"type\":\"text\",\"text\":\"%0150d\"}"
#define COLUMNS 7

static PGconn *conn;

static void must(int ok, const char *what)
{
    if (!ok)
        bench_fail(what);
}

static void run(const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    must(PQresultStatus(result) == PGRES_COMMAND_OK, sql);
    PQclear(result);
}

static void prepare(const char *name, const char *sql)
{
    PGresult *result = PQprepare(conn, name, sql, 0, NULL);
    must(PQresultStatus(result) == PGRES_COMMAND_OK, sql);
    PQclear(result);
}

static void open_table(const char *url)
{
    conn = PQconnectdb(url);
    must(PQstatus(conn) == CONNECTION_OK, "PostgreSQL cannot be reached");
    run("SET client_min_messages = error");
    run("DROP TABLE IF EXISTS bare");
    run("CREATE TABLE bare (op bigint NOT NULL, seq bigint NOT NULL,"
        " segment bigint NOT NULL, event bigint NOT NULL, kind integer NOT NULL,"
        " at bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (op, seq))");
    prepare("insert", "INSERT INTO bare VALUES ($1, $2, $3, $4, $5, $6, $7)");
    must(PQenterPipelineMode(conn), "no pipeline");
}

static void send_statement(const char *sql)
{
    must(PQsendQueryParams(conn, sql, 0, NULL, NULL, NULL, NULL, 1), sql);
}

static void send_row(int64_t task, int64_t seq, const char *data, int len)
{
    const uint64_t op = htobe64((uint64_t)task), number = htobe64((uint64_t)seq);
    const uint64_t at = htobe64((uint64_t)(1790000000000 + seq / 1000));
    const uint32_t kind = htonl(1);
    const char *const values[COLUMNS] = {(const char *)&op,
                                         (const char *)&number,
                                         (const char *)&number,
                                         (const char *)&number,
                                         (const char *)&kind,
                                         (const char *)&at,
                                         data};
    const int lengths[COLUMNS] = {8, 8, 8, 8, 4, 8, len};
    const int formats[COLUMNS] = {1, 1, 1, 1, 1, 1, 1};
    must(PQsendQueryPrepared(conn, "insert", COLUMNS, values, lengths, formats, 1),
         "a row cannot be sent");
}

/* Waits for the results of the statements; each is followed by NULL. */
static void await(int64_t statements)
{
    must(PQpipelineSync(conn), "no sync");
    for (int64_t i = 0; i < statements; i++) {
        PGresult *result = PQgetResult(conn);
        must(PQresultStatus(result) == PGRES_COMMAND_OK, "a row cannot be written");
        PQclear(result);
        must(!PQgetResult(conn), "a result too many");
    }
    PGresult *sync = PQgetResult(conn);
    must(PQresultStatus(sync) == PGRES_PIPELINE_SYNC, "a batch cannot be committed");
    PQclear(sync);
}

static void run_bare(const char *url, int64_t rows, int64_t batch, int64_t tasks)
{
    char data[256];
    int len = snprintf(data, sizeof data, SEGMENT, 0);
    open_table(url);
    int64_t from = bench_now_ns();
    for (int64_t row = 0; row < rows;) {
        int64_t sent = 0;
        send_statement("BEGIN");
        for (; sent < batch && row < rows; sent++, row++)
            send_row(row % tasks + 1, row / tasks + 1, data, len);
        send_statement("COMMIT");
        await(sent + 2);
    }
    bench_say("rows_per_s", (double)rows / (double)(bench_now_ns() - from) * 1e9);
    PQfinish(conn);
}

static void run_store(const char *url, int64_t rows, int64_t batch, int64_t tasks)
{
    char data[256];
    size_t len = (size_t)snprintf(data, sizeof data, SEGMENT, 0);
    segue_store *store = NULL;
    segue_store_write *writes = calloc((size_t)batch, sizeof *writes);
    must(writes && !sgi_store_postgres_new(url, NULL, &store, NULL, 0),
         "the store cannot be opened");
    for (int64_t task = 0; task < tasks; task++) {
        test_record r;
        test_record_init(&r, (uint32_t)task);
        must(!test_commit_one(store, test_write_create(&r)), "no operation");
    }
    int64_t from = bench_now_ns();
    for (int64_t row = 0; row < rows;) {
        size_t count = 0;
        for (; count < (size_t)batch && row < rows; count++, row++)
            writes[count] = test_write_append((uint32_t)(row % tasks),
                                              (uint64_t)(row / tasks + 1), data, len);
        must(!sgi_store_commit(store, writes, count), "a batch cannot be committed");
    }
    bench_say("rows_per_s", (double)rows / (double)(bench_now_ns() - from) * 1e9);
    sgi_store_unref(store);
    free(writes);
}

int main(int argc, char **argv)
{
    bench_pin(&argc, &argv);
    bool stored = argc > 1 && !strcmp(argv[1], "--store");
    argc -= stored;
    argv += stored;
    int64_t rows = bench_number(argc, argv, 2, 0);
    int64_t batch = bench_number(argc, argv, 3, 0);
    int64_t tasks = bench_number(argc, argv, 4, 1);
    if (argc < 4 || rows < 1 || batch < 1 || tasks < 1)
        bench_fail("URL ROWS BATCH TASKS");
    (stored ? run_store : run_bare)(argv[1], rows, batch, tasks);
    return 0;
}
