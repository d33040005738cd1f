/* The PL/pgSQL functions of the PostgreSQL store, except the function of a commit.
 *
 * A call that changes something has a number. `begin_call` writes the number into the row
 * of the call's owner, in the same transaction as the changes. A call that is repeated
 * because its answer was lost therefore finds out whether it was applied. If the first
 * try still runs, the repeated call waits for the lock on that row. A late copy from an
 * abandoned connection has a lower number than the calls after it, so it does nothing.
 *
 * Each function locks the rows of operations before it reads them. The transactions are
 * READ COMMITTED, so each statement sees what was committed before the statement began.
 * Locks on several operations are taken in the order of their ids. */
#include "store/postgres_schema.h"

/* Returns the time of the database server in ms. Only this clock decides when a lease
 * ends. */
static const char NOW_MS[] =
    "CREATE FUNCTION @.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$\n"
    "  SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;\n";

/* Returns the owners whose lease has ended. After a restart of the database server, each
 * owner gets the time of one lease to come back. */
static const char GONE[] =
    "CREATE FUNCTION @.gone(p_me uuid) RETURNS SETOF uuid LANGUAGE sql VOLATILE AS $$\n"
    "  SELECT owner FROM @.lease\n"
    "  WHERE owner <> p_me AND seen + ms <= @.now_ms() AND\n"
    "    extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 >= ms "
    "$$;\n";

/* Tells the followers of operations that the operations have grown, at most 200 ids per
 * message. */
static const char TELL[] =
    "CREATE FUNCTION @.tell(p_me uuid, p_ids uuid[]) RETURNS void LANGUAGE sql AS $$\n"
    "  SELECT pg_notify('segue:' || replace(f.owner::text, '-', ''),\n"
    "    'G' || string_agg(replace(f.id::text, '-', ''), ''))\n"
    "  FROM (SELECT owner, id, row_number() OVER (PARTITION BY owner) / 200 AS part\n"
    "    FROM @.follow WHERE id = ANY (p_ids) AND owner <> p_me) f\n"
    "  GROUP BY f.owner, f.part $$;\n";

/* Tells all instances that some operations may wait to be claimed. */
static const char TELL_ALL[] =
    "CREATE FUNCTION @.tell_all(p_me uuid) RETURNS void LANGUAGE sql AS $$\n"
    "  SELECT pg_notify('segue:@', 'O' || replace(p_me::text, '-', '')) $$;\n";

/* Finds out whether the server may have lost commits (postgres_history.c). Returns the
 * number of breaks (times at which commits may have been lost), and the token of the
 * table `life`, which changes with each loss. */
static const char ARRIVE[] =
    "CREATE FUNCTION @.arrive(OUT breaks bigint, OUT life text) LANGUAGE plpgsql AS $$\n"
    "#variable_conflict use_column\n"
    "DECLARE\n"
    "  v_was record;\n"
    "  v_token text;\n"
    "  v_line text;\n"
    "BEGIN\n"
    "  SELECT token INTO v_token FROM @.life, @.history WHERE at = '@.life'::regclass;\n"
    "  IF v_token IS NULL THEN\n"
    "    SELECT * INTO v_was FROM @.history FOR UPDATE;\n"
    "    SELECT token INTO v_token FROM @.life, @.history WHERE at = "
    "'@.life'::regclass;\n"
    "  END IF;\n"
    "  IF v_token IS NULL THEN\n"
    "    v_token := gen_random_uuid()::text;\n"
    "    v_line := left(pg_walfile_name(pg_current_wal_lsn()), 8);\n"
    "    IF v_line <> v_was.timeline OR v_was.at <> '@.life'::regclass OR\n"
    "        EXISTS (SELECT FROM @.owner WHERE loose) THEN\n"
    "      UPDATE @.owner SET away = v_was.breaks FROM @.lease l\n"
    "        WHERE l.owner = id AND (SELECT max(seen) FROM @.lease) - l.seen > l.ms / "
    "2;\n"
    "      UPDATE @.history SET timeline = v_line, breaks = v_was.breaks + 1,\n"
    "        at = '@.life'::regclass;\n"
    "    END IF;\n"
    "    DELETE FROM @.life;\n"
    "    INSERT INTO @.life VALUES (v_token);\n"
    "  END IF;\n"
    "  SELECT h.breaks, v_token INTO breaks, life FROM @.history h;\n"
    "END $$;\n";

/* Makes an owner. */
static const char ENTER[] =
    "CREATE FUNCTION @.enter(p_me uuid, p_ms bigint, p_sync text) RETURNS void\n"
    "LANGUAGE plpgsql AS $$\n"
    "DECLARE\n"
    "  v_sync text := coalesce(nullif(p_sync, ''), "
    "current_setting('synchronous_commit'));\n"
    "BEGIN\n"
    "  PERFORM set_config('synchronous_commit', 'on', true);\n"
    "  INSERT INTO @.owner (id, done, loose)\n"
    "    VALUES (p_me, 0, v_sync = 'off' OR current_setting('fsync') = 'off')\n"
    "    ON CONFLICT DO NOTHING;\n"
    "  INSERT INTO @.lease VALUES (p_me, p_ms, @.now_ms()) ON CONFLICT DO NOTHING;\n"
    "END $$;\n";

/* Closes an owner. */
static const char LEAVE[] =
    "CREATE FUNCTION @.leave(p_me uuid) RETURNS void LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  PERFORM set_config('synchronous_commit', 'on', true);\n"
    "  DELETE FROM @.follow WHERE owner = p_me;\n"
    "  IF EXISTS (SELECT FROM @.operation WHERE owner = p_me AND NOT ended) THEN\n"
    "    UPDATE @.lease SET ms = 0, seen = 0 WHERE owner = p_me;\n"
    "    PERFORM @.tell_all(p_me);\n"
    "  ELSE\n"
    "    DELETE FROM @.lease WHERE owner = p_me;\n"
    "    DELETE FROM @.owner WHERE id = p_me;\n"
    "  END IF;\n"
    "END $$;\n";

/* Prolongs the lease of an owner. Returns whether the lease had lapsed, whether
 * operations may wait to be claimed, and the approximate number of operations. Deletes
 * owners that are long gone. When the clock of the server was set back, a lease whose
 * last renewal lies in the future starts again now. */
static const char BEAT[] =
    "CREATE FUNCTION @.beat(p_me uuid, p_ms bigint, OUT lapsed boolean, OUT orphans "
    "boolean,\n"
    "  OUT operations bigint, OUT breaks bigint, OUT life text) LANGUAGE plpgsql AS $$\n"
    "#variable_conflict use_column\n"
    "DECLARE\n"
    "  v_old uuid;\n"
    "BEGIN\n"
    "  SELECT a.breaks, a.life INTO breaks, life FROM @.arrive() a;\n"
    "  SELECT NOT EXISTS (SELECT FROM @.lease\n"
    "    WHERE owner = p_me AND seen + ms > @.now_ms()) INTO lapsed;\n"
    "  INSERT INTO @.lease VALUES (p_me, p_ms, @.now_ms())\n"
    "    ON CONFLICT (owner) DO UPDATE SET ms = excluded.ms, seen = excluded.seen;\n"
    "  UPDATE @.lease SET seen = @.now_ms() WHERE owner IN (SELECT owner FROM @.lease\n"
    "    WHERE seen > @.now_ms() FOR NO KEY UPDATE SKIP LOCKED);\n"
    "  FOR v_old IN SELECT g FROM @.gone(p_me) g\n"
    "    WHERE NOT EXISTS (SELECT FROM @.operation WHERE owner = g AND NOT ended)\n"
    "  LOOP\n"
    "    DELETE FROM @.follow WHERE owner = v_old;\n"
    "    DELETE FROM @.lease WHERE owner = v_old AND seen + greatest(10 * ms, 3600000) "
    "<= @.now_ms();\n"
    "    IF FOUND THEN\n"
    "      DELETE FROM @.owner WHERE id = v_old;\n"
    "    END IF;\n"
    "  END LOOP;\n"
    "  SELECT EXISTS (SELECT FROM @.operation WHERE owner IS NULL AND NOT ended) OR\n"
    "    EXISTS (SELECT FROM @.gone(p_me) g\n"
    "      WHERE EXISTS (SELECT FROM @.operation WHERE owner = g AND NOT ended)) INTO "
    "orphans;\n"
    "  operations := pg_stat_get_live_tuples('@.operation'::regclass);\n"
    "END $$;\n";

/* Begins a call that changes something. Returns false when the call with this number was
 * already applied. */
static const char BEGIN_CALL[] =
    "CREATE FUNCTION @.begin_call(p_me uuid, p_call bigint) RETURNS boolean\n"
    "LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  UPDATE @.owner SET done = p_call WHERE id = p_me AND done < p_call;\n"
    "  IF FOUND THEN\n"
    "    RETURN true;\n"
    "  END IF;\n"
    "  INSERT INTO @.owner (id, done, loose) VALUES (p_me, p_call, true)\n"
    "    ON CONFLICT DO NOTHING;\n"
    "  RETURN FOUND;\n"
    "END $$;\n";

/* Removes an operation. The log of the operation is removed by later steps of a purge. */
static const char REMOVE[] =
    "CREATE FUNCTION @.remove(p_me uuid, p_op bigint, p_id uuid) RETURNS void\n"
    "LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  PERFORM @.tell(p_me, ARRAY[p_id]);\n"
    "  DELETE FROM @.follow WHERE id = p_id;\n"
    "  DELETE FROM @.letter WHERE op = p_op;\n"
    "  DELETE FROM @.operation WHERE op = p_op;\n"
    "  INSERT INTO @.garbage VALUES (p_op);\n"
    "END $$;\n";

/* Claims operations whose owner is gone. p_shown: the operations of the last claim that
 * were passed to the callback. A repeated call returns the same operations and no further
 * operations. */
static const char CLAIM[] =
    "CREATE FUNCTION @.claim(p_me uuid, p_call bigint, p_most integer, p_shown uuid[])\n"
    "RETURNS TABLE (id uuid, task_id bytea, idempotency_key bytea, principal bytea,\n"
    "  ended boolean, created bigint, purge bigint, data bytea, torn boolean)\n"
    "LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$\n"
    "#variable_conflict use_column\n"
    "DECLARE\n"
    "  v_breaks bigint;\n"
    "  v_new boolean := @.begin_call(p_me, p_call);\n"
    "BEGIN\n"
    "  SELECT a.breaks INTO v_breaks FROM @.arrive() a;\n"
    "  IF v_new THEN\n"
    "    UPDATE @.operation SET claimed = false WHERE id = ANY (p_shown) AND owner = "
    "p_me;\n"
    "  END IF;\n"
    "  IF v_new AND NOT EXISTS (SELECT FROM @.operation WHERE claimed AND owner = p_me) "
    "THEN\n"
    "    UPDATE @.operation SET owner = p_me, claimed = true\n"
    "    WHERE op IN (SELECT op FROM @.operation\n"
    "      WHERE NOT ended AND (owner IS NULL OR owner IN (SELECT g FROM @.gone(p_me) "
    "g))\n"
    "      ORDER BY op LIMIT p_most FOR NO KEY UPDATE SKIP LOCKED);\n"
    "  END IF;\n"
    "  RETURN QUERY SELECT id, task_id, idempotency_key, principal, ended, created, "
    "purge,\n"
    "      data, breaks <> v_breaks\n"
    "    FROM @.operation WHERE claimed AND owner = p_me AND NOT ended ORDER BY op LIMIT "
    "p_most;\n"
    "END $$;\n";

/* Ends a claim: gives back the claimed operations that were not passed to the
 * callback. */
static const char UNCLAIM[] =
    "CREATE FUNCTION @.unclaim(p_me uuid, p_call bigint, p_shown uuid[]) RETURNS void\n"
    "LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$\n"
    "BEGIN\n"
    "  IF @.begin_call(p_me, p_call) THEN\n"
    "    UPDATE @.operation SET claimed = false WHERE id = ANY (p_shown) AND owner = "
    "p_me;\n"
    "    UPDATE @.operation SET claimed = false, owner = NULL WHERE claimed AND owner = "
    "p_me;\n"
    "    IF FOUND THEN\n"
    "      PERFORM @.tell_all(p_me);\n"
    "    END IF;\n"
    "  END IF;\n"
    "END $$;\n";

/* Deletes operations whose purge time has come, and log rows of deleted operations;
 * p_most limits the number of deleted rows. */
static const char PURGE[] =
    "CREATE FUNCTION @.purge(p_me uuid, p_call bigint, p_now bigint, p_most integer,\n"
    "  OUT purged bigint, OUT next_ms bigint)\n"
    "LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$\n"
    "DECLARE\n"
    "  v record;\n"
    "  v_left bigint := p_most;\n"
    "  v_count bigint;\n"
    "BEGIN\n"
    "  purged := 0;\n"
    "  IF @.begin_call(p_me, p_call) THEN\n"
    "    FOR v IN SELECT op, id FROM @.operation\n"
    "      WHERE purge <= p_now AND purge < 9223372036854775807\n"
    "      ORDER BY purge LIMIT p_most FOR UPDATE SKIP LOCKED\n"
    "    LOOP\n"
    "      PERFORM @.remove(p_me, v.op, v.id);\n"
    "      purged := purged + 1;\n"
    "      v_left := v_left - 1;\n"
    "    END LOOP;\n"
    "    FOR v IN SELECT op FROM @.garbage ORDER BY op FOR UPDATE SKIP LOCKED LOOP\n"
    "      EXIT WHEN v_left <= 0;\n"
    "      DELETE FROM @.log WHERE op = v.op AND seq IN (SELECT seq FROM @.log\n"
    "        WHERE op = v.op ORDER BY seq LIMIT v_left);\n"
    "      GET DIAGNOSTICS v_count = ROW_COUNT;\n"
    "      v_left := v_left - v_count - 1;\n"
    "      IF v_left >= 0 THEN\n"
    "        DELETE FROM @.garbage WHERE op = v.op;\n"
    "      END IF;\n"
    "    END LOOP;\n"
    "  END IF;\n"
    "  SELECT CASE WHEN EXISTS (SELECT FROM @.garbage) THEN p_now ELSE\n"
    "      coalesce((SELECT purge FROM @.operation WHERE purge < 9223372036854775807\n"
    "        ORDER BY purge LIMIT 1), 9223372036854775807) END INTO next_ms;\n"
    "END $$;\n";

/* Starts or stops following operations. Returns how many of the operations exist; 0 when
 * following stops. The lock on the operations waits for running commits, so that the
 * entries of these commits can be read afterwards. */
static const char FOLLOW[] =
    "CREATE FUNCTION @.follow(p_me uuid, p_ids uuid[], p_on boolean) RETURNS bigint\n"
    "LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$\n"
    "DECLARE\n"
    "  v_count bigint;\n"
    "BEGIN\n"
    "  IF NOT p_on THEN\n"
    "    DELETE FROM @.follow WHERE id = ANY (p_ids) AND owner = p_me;\n"
    "    RETURN 0;\n"
    "  END IF;\n"
    "  PERFORM FROM @.operation WHERE id = ANY (p_ids) ORDER BY id FOR NO KEY UPDATE;\n"
    "  GET DIAGNOSTICS v_count = ROW_COUNT;\n"
    "  UPDATE @.operation SET followed = true WHERE id = ANY (p_ids) AND NOT followed;\n"
    "  INSERT INTO @.follow SELECT id, p_me FROM @.operation WHERE id = ANY (p_ids)\n"
    "    ON CONFLICT DO NOTHING;\n"
    "  RETURN v_count;\n"
    "END $$;\n";

/* Stores a forwarded command. Returns true when the caller itself owns the operation. */
static const char POST[] =
    "CREATE FUNCTION @.post(p_me uuid, p_call bigint, p_id uuid, p_data bytea, p_most "
    "integer)\n"
    "RETURNS boolean LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$\n"
    "DECLARE\n"
    "  v record;\n"
    "BEGIN\n"
    "  IF NOT @.begin_call(p_me, p_call) THEN\n"
    "    RETURN true;\n"
    "  END IF;\n"
    "  SELECT op, owner, ended, letters INTO v FROM @.operation WHERE id = p_id\n"
    "    FOR NO KEY UPDATE;\n"
    "  IF NOT FOUND THEN\n"
    "    RAISE EXCEPTION '0' USING ERRCODE = 'SG008';\n"
    "  ELSIF v.ended THEN\n"
    "    RAISE EXCEPTION '0' USING ERRCODE = 'SG011';\n"
    "  ELSIF (SELECT count(*) FROM @.letter WHERE op = v.op) >= p_most THEN\n"
    "    RAISE EXCEPTION '0' USING ERRCODE = 'SG012';\n"
    "  END IF;\n"
    "  INSERT INTO @.letter VALUES (v.op, v.letters + 1, p_data);\n"
    "  UPDATE @.operation SET letters = v.letters + 1 WHERE op = v.op;\n"
    "  IF v.owner <> p_me THEN\n"
    "    PERFORM pg_notify('segue:' || replace(v.owner::text, '-', ''),\n"
    "      'L' || replace(p_id::text, '-', ''));\n"
    "  END IF;\n"
    "  RETURN v.owner IS NOT DISTINCT FROM p_me;\n"
    "END $$;\n";

/* Reads one page of a log: up to p_rows entries. The page ends earlier when its entries
 * have p_bytes bytes. */
static const char READ_LOG[] =
    "CREATE FUNCTION @.read_log(p_id uuid, p_after bigint, p_rows integer,\n"
    "  p_bytes bigint) RETURNS SETOF @.log\n"
    "LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$\n"
    "DECLARE\n"
    "  v_op bigint;\n"
    "  v @.log;\n"
    "  v_bytes bigint := 0;\n"
    "BEGIN\n"
    "  SELECT op INTO v_op FROM @.operation WHERE id = p_id;\n"
    "  IF NOT FOUND THEN\n"
    "    RAISE EXCEPTION '0' USING ERRCODE = 'SG008';\n"
    "  END IF;\n"
    "  FOR v IN SELECT * FROM @.log WHERE op = v_op AND seq > p_after\n"
    "    ORDER BY seq LIMIT p_rows\n"
    "  LOOP\n"
    "    RETURN NEXT v;\n"
    "    v_bytes := v_bytes + octet_length(v.data);\n"
    "    EXIT WHEN v_bytes >= p_bytes;\n"
    "  END LOOP;\n"
    "END $$;\n";

const char *const sgi_pg_functions[] = {
    NOW_MS, GONE,  TELL,    TELL_ALL, ARRIVE, ENTER, LEAVE,    BEAT, BEGIN_CALL,
    REMOVE, CLAIM, UNCLAIM, PURGE,    FOLLOW, POST,  READ_LOG, NULL};
