/* The format of the PostgreSQL store: its tables, and the migrations.
 *
 *   migration  the formats that the schema was brought to; the highest is its format
 *   history    the timeline of the server, how many breaks it had, and the object number
 *              of the table `life` (postgres_history.c)
 *   life       unlogged, so that it is empty after a crash and on a promoted standby
 *   owner      instances; done: number of the last call that changed something; loose:
 *              commits may be lost when the server crashes; away: number of breaks at
 *              which the owner was found silent
 *   lease      when an instance was last seen, by the clock of the server
 *   operation  records; owner NULL = released; claimed: handed over by a claim, and not
 *              yet acknowledged; breaks: number of breaks when its owner last knew that
 *              its log was complete; letters: number of the last forwarded command
 *   log        entries
 *   garbage    deleted operations that still have rows in `log`
 *   letter     forwarded commands
 *   follow     which instances follow which operations
 *
 * Format 2 is one of records and entries (core/docs/upgrades.md). Its triggers refuse
 * owners that read only format 1: such an owner may have checked the format just before,
 * or may have been away. The name of an owner says what the owner reads, and names sort
 * by it.
 *
 * Task ids and data are bytes (bytea), because they may contain any byte, even NUL. Ids
 * have the 16 bytes of a uuid. An unsigned number is stored as the signed number with the
 * same bits.
 *
 * Functions in the schema do the work, so that each call is one statement: one round
 * trip, and atomic without BEGIN and COMMIT. No call leaves state in a session. Therefore
 * the calls work through a pooler that gives each transaction another session.
 *
 * Every row of `operation` and `log` is deleted after a while, so dead rows are made free
 * when a twentieth of the rows are dead, and not only when a fifth of them are. These
 * settings are no part of the format, and can be changed by ALTER TABLE.
 *
 * A migration runs in one transaction under an advisory lock. The migration to format 2
 * waits until no owner lives that reads only format 1 (format.h). When the schema already
 * has the right format, opening a store changes no table and needs no right to change
 * tables. */
#include "store/postgres_schema.h"

static const char TABLES[] =
    "CREATE TABLE @.migration (\n"
    "  number integer PRIMARY KEY,\n"
    "  at timestamptz NOT NULL DEFAULT now());\n"
    "CREATE TABLE @.history (\n"
    "  timeline text NOT NULL,\n"
    "  breaks bigint NOT NULL,\n"
    "  at oid NOT NULL);\n"
    "INSERT INTO @.history VALUES ('', 0, 0);\n"
    "CREATE UNLOGGED TABLE @.life (token text NOT NULL);\n"
    "CREATE TABLE @.owner (\n"
    "  id uuid PRIMARY KEY,\n"
    "  done bigint NOT NULL,\n"
    "  loose boolean NOT NULL,\n"
    "  away bigint) WITH (fillfactor = 50);\n"
    "CREATE TABLE @.lease (\n"
    "  owner uuid PRIMARY KEY,\n"
    "  ms bigint NOT NULL,\n"
    "  seen bigint NOT NULL) WITH (fillfactor = 50);\n"
    "CREATE TABLE @.operation (\n"
    "  op bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n"
    "  id uuid NOT NULL UNIQUE,\n"
    "  task_id bytea NOT NULL UNIQUE,\n"
    "  idempotency_key bytea UNIQUE,\n"
    "  principal bytea NOT NULL,\n"
    "  owner uuid,\n"
    "  claimed boolean NOT NULL DEFAULT false,\n"
    "  ended boolean NOT NULL,\n"
    "  followed boolean NOT NULL DEFAULT false,\n"
    "  created bigint NOT NULL,\n"
    "  purge bigint NOT NULL,\n"
    "  breaks bigint NOT NULL,\n"
    "  letters bigint NOT NULL DEFAULT 0,\n"
    "  bytes bigint NOT NULL,\n"
    "  data bytea NOT NULL) WITH (fillfactor = 80,\n"
    "    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);\n"
    "CREATE INDEX operation_listed ON @.operation (principal, created, task_id);\n"
    "CREATE INDEX operation_open ON @.operation (owner) WHERE NOT ended;\n"
    "CREATE INDEX operation_claimed ON @.operation (owner) WHERE claimed;\n"
    "CREATE INDEX operation_purge ON @.operation (purge) WHERE purge < "
    "9223372036854775807;\n"
    "CREATE TABLE @.log (\n"
    "  op bigint NOT NULL,\n"
    "  seq bigint NOT NULL,\n"
    "  segment bigint NOT NULL,\n"
    "  event bigint NOT NULL,\n"
    "  kind integer NOT NULL,\n"
    "  at bigint NOT NULL,\n"
    "  data bytea NOT NULL,\n"
    "  PRIMARY KEY (op, seq)) WITH (\n"
    "    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);\n"
    "CREATE TABLE @.garbage (op bigint PRIMARY KEY);\n"
    "CREATE TABLE @.letter (\n"
    "  op bigint NOT NULL,\n"
    "  number bigint NOT NULL,\n"
    "  data bytea NOT NULL,\n"
    "  PRIMARY KEY (op, number));\n"
    "CREATE TABLE @.follow (\n"
    "  id uuid NOT NULL,\n"
    "  owner uuid NOT NULL,\n"
    "  PRIMARY KEY (id, owner));\n"
    "CREATE INDEX follow_owner ON @.follow (owner);\n";

/* the names of owners that read format 2 or newer */
#define READS_2                                                                          \
    "BETWEEN '53656775-6500-0002-0000-000000000000' AND "                                \
    "'53656775-6500-ffff-ffff-ffffffffffff'"

static const char REFUSE_OLDER[] =
    "CREATE FUNCTION @.refuse_older() RETURNS trigger LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  RAISE EXCEPTION 'schema \"%\" was written by a newer version of Segue (format "
    "2)',\n"
    "    TG_TABLE_SCHEMA;\n"
    "END $$;\n"
    "CREATE TRIGGER refuse_older BEFORE INSERT OR UPDATE OF done ON @.owner FOR EACH "
    "ROW\n"
    "  WHEN (NEW.id NOT " READS_2 ") EXECUTE FUNCTION @.refuse_older();\n"
    "CREATE TRIGGER refuse_older BEFORE INSERT ON @.lease FOR EACH ROW\n"
    "  WHEN (NEW.owner NOT " READS_2 ") EXECUTE FUNCTION @.refuse_older();\n";

const char sgi_pg_look_sql[] =
    "SELECT (SELECT max(number) FROM @.migration)::bigint, EXISTS (SELECT FROM @.lease\n"
    "  WHERE owner NOT " READS_2 " AND owner NOT IN (SELECT g FROM @.gone($1) g))";

_Static_assert(SGI_PG_FORMAT == 2, "sgi_pg_look_sql names the newest format");

static const char *const TABLES_OF_1[] = {TABLES, NULL};
static const char *const TRIGGERS_OF_2[] = {REFUSE_OLDER, NULL};

/* The parts of the SQL text of each migration; a NULL ends the parts. */
static const char *const *const MIGRATIONS[SGI_PG_FORMAT][4] = {
    {TABLES_OF_1, sgi_pg_functions, sgi_pg_commit_functions, NULL},
    {TRIGGERS_OF_2, NULL},
};

void sgi_pg_add_sql(sgi_buf *to, const char *sql, const char *schema)
{
    for (const char *at; (at = strchr(sql, '@')); sql = at + 1) {
        sgi_buf_add(to, sql, (size_t)(at - sql));
        sgi_buf_add_char(to, '"');
        sgi_buf_add(to, schema, strlen(schema));
        sgi_buf_add_char(to, '"');
    }
    sgi_buf_add(to, sql, strlen(sql));
}

void sgi_pg_add_migration(sgi_buf *to, int number, const char *schema)
{
    const char *const *const *part = MIGRATIONS[number - 1];
    for (; *part; part++)
        for (const char *const *sql = *part; *sql; sql++)
            sgi_pg_add_sql(to, *sql, schema);
}
