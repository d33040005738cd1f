--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: segue; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA segue;


--
-- Name: arrive(); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.arrive(OUT breaks bigint, OUT life text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
  v_was record;
  v_token text;
  v_line text;
BEGIN
  SELECT token INTO v_token FROM "segue".life, "segue".history WHERE at = '"segue".life'::regclass;
  IF v_token IS NULL THEN
    SELECT * INTO v_was FROM "segue".history FOR UPDATE;
    SELECT token INTO v_token FROM "segue".life, "segue".history WHERE at = '"segue".life'::regclass;
  END IF;
  IF v_token IS NULL THEN
    v_token := gen_random_uuid()::text;
    v_line := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    IF v_line <> v_was.timeline OR v_was.at <> '"segue".life'::regclass OR
        EXISTS (SELECT FROM "segue".owner WHERE loose) THEN
      UPDATE "segue".owner SET away = v_was.breaks FROM "segue".lease l
        WHERE l.owner = id AND (SELECT max(seen) FROM "segue".lease) - l.seen > l.ms / 2;
      UPDATE "segue".history SET timeline = v_line, breaks = v_was.breaks + 1,
        at = '"segue".life'::regclass;
    END IF;
    DELETE FROM "segue".life;
    INSERT INTO "segue".life VALUES (v_token);
  END IF;
  SELECT h.breaks, v_token INTO breaks, life FROM "segue".history h;
END $$;


--
-- Name: beat(uuid, bigint); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.beat(p_me uuid, p_ms bigint, OUT lapsed boolean, OUT orphans boolean, OUT operations bigint, OUT breaks bigint, OUT life text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
  v_old uuid;
BEGIN
  SELECT a.breaks, a.life INTO breaks, life FROM "segue".arrive() a;
  SELECT NOT EXISTS (SELECT FROM "segue".lease
    WHERE owner = p_me AND seen + ms > "segue".now_ms()) INTO lapsed;
  INSERT INTO "segue".lease VALUES (p_me, p_ms, "segue".now_ms())
    ON CONFLICT (owner) DO UPDATE SET ms = excluded.ms, seen = excluded.seen;
  UPDATE "segue".lease SET seen = "segue".now_ms() WHERE owner IN (SELECT owner FROM "segue".lease
    WHERE seen > "segue".now_ms() FOR NO KEY UPDATE SKIP LOCKED);
  FOR v_old IN SELECT g FROM "segue".gone(p_me) g
    WHERE NOT EXISTS (SELECT FROM "segue".operation WHERE owner = g AND NOT ended)
  LOOP
    DELETE FROM "segue".follow WHERE owner = v_old;
    DELETE FROM "segue".lease WHERE owner = v_old AND seen + greatest(10 * ms, 3600000) <= "segue".now_ms();
    IF FOUND THEN
      DELETE FROM "segue".owner WHERE id = v_old;
    END IF;
  END LOOP;
  SELECT EXISTS (SELECT FROM "segue".operation WHERE owner IS NULL AND NOT ended) OR
    EXISTS (SELECT FROM "segue".gone(p_me) g
      WHERE EXISTS (SELECT FROM "segue".operation WHERE owner = g AND NOT ended)) INTO orphans;
  operations := pg_stat_get_live_tuples('"segue".operation'::regclass);
END $$;


--
-- Name: begin_call(uuid, bigint); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.begin_call(p_me uuid, p_call bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE "segue".owner SET done = p_call WHERE id = p_me AND done < p_call;
  IF FOUND THEN
    RETURN true;
  END IF;
  INSERT INTO "segue".owner (id, done, loose) VALUES (p_me, p_call, true)
    ON CONFLICT DO NOTHING;
  RETURN FOUND;
END $$;


--
-- Name: claim(uuid, bigint, integer, uuid[]); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.claim(p_me uuid, p_call bigint, p_most integer, p_shown uuid[]) RETURNS TABLE(id uuid, task_id bytea, idempotency_key bytea, principal bytea, ended boolean, created bigint, purge bigint, data bytea, torn boolean)
    LANGUAGE plpgsql
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
  v_breaks bigint;
  v_new boolean := "segue".begin_call(p_me, p_call);
BEGIN
  SELECT a.breaks INTO v_breaks FROM "segue".arrive() a;
  IF v_new THEN
    UPDATE "segue".operation SET claimed = false WHERE id = ANY (p_shown) AND owner = p_me;
  END IF;
  IF v_new AND NOT EXISTS (SELECT FROM "segue".operation WHERE claimed AND owner = p_me) THEN
    UPDATE "segue".operation SET owner = p_me, claimed = true
    WHERE op IN (SELECT op FROM "segue".operation
      WHERE NOT ended AND (owner IS NULL OR owner IN (SELECT g FROM "segue".gone(p_me) g))
      ORDER BY op LIMIT p_most FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  RETURN QUERY SELECT id, task_id, idempotency_key, principal, ended, created, purge,
      data, breaks <> v_breaks
    FROM "segue".operation WHERE claimed AND owner = p_me AND NOT ended ORDER BY op LIMIT p_most;
END $$;


--
-- Name: commit(uuid, bigint, text, boolean, bigint, bigint, smallint[], uuid[], bigint[], bigint[], bigint[], integer[], bigint[], bytea[], bytea[], bytea[], bytea[]); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.commit(p_me uuid, p_call bigint, p_sync text, p_plain boolean, p_most bigint, p_most_bytes bigint, p_kinds smallint[], p_ids uuid[], p_seqs bigint[], p_segments bigint[], p_events bigint[], p_types integer[], p_times bigint[], p_datas bytea[], p_tasks bytea[], p_keys bytea[], p_principals bytea[]) RETURNS bigint
    LANGUAGE plpgsql
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
DECLARE
  v_breaks bigint;
  v_kind smallint;
  v_id uuid;
  v_before uuid;
  v_seq bigint;
  v_last bigint;
  v_made uuid[] := '{}';
  v_told uuid[] := '{}';
  v_at integer := 0;
  v_evicted bigint := 0;
  v_loose boolean := false;
  v_fits boolean;
  v_followed boolean;
  v record;
BEGIN
  IF NOT "segue".begin_call(p_me, p_call) THEN
    RETURN 0;
  END IF;
  IF p_sync <> '' THEN
    PERFORM set_config('synchronous_commit', p_sync, true);
  END IF;
  SELECT breaks INTO v_breaks FROM "segue".history;
  PERFORM FROM "segue".operation WHERE id = ANY (p_ids) ORDER BY id FOR NO KEY UPDATE;
  IF p_plain THEN
    SELECT bool_and(coalesce(o.owner = p_me AND o.breaks = v_breaks AND
        g.hi - g.lo + 1 = g.n AND g.lo = 1 + coalesce((SELECT l.seq FROM "segue".log l
          WHERE l.op = o.op ORDER BY l.seq DESC LIMIT 1), 0), false)),
        bool_or(o.followed) INTO v_fits, v_followed
      FROM (SELECT u.id, min(u.seq) AS lo, max(u.seq) AS hi, count(*) AS n
        FROM unnest(p_ids, p_seqs) AS u (id, seq) GROUP BY u.id) g
      LEFT JOIN "segue".operation o ON o.id = g.id;
    IF v_fits THEN
      INSERT INTO "segue".log SELECT o.op, u.seq, u.segment, u.event, u.kind, u.at, u.data
        FROM unnest(p_ids, p_seqs, p_segments, p_events, p_types, p_times, p_datas)
          AS u (id, seq, segment, event, kind, at, data)
        JOIN "segue".operation o ON o.id = u.id;
      IF v_followed THEN
        PERFORM "segue".tell(p_me, p_ids);
      END IF;
      RETURN 0;
    END IF;
  END IF;
  FOR i IN 1 .. cardinality(p_kinds) LOOP
    v_kind := p_kinds[i];
    v_id := p_ids[i];
    v_seq := p_seqs[i];
    IF v_kind = 1 THEN
      v_at := v_at + 1;
      v_before := NULL;
      SELECT * INTO v FROM "segue".operation WHERE id = v_id;
      IF FOUND THEN
        IF v_id = ANY (v_made) OR v.task_id <> p_tasks[v_at] OR
          v.idempotency_key IS DISTINCT FROM p_keys[v_at] OR
          v.principal <> p_principals[v_at] OR v.created <> v_seq OR
          v.data <> p_datas[i] THEN
          RAISE EXCEPTION '%', i USING ERRCODE = 'SG009';
        ELSIF v.owner <> p_me THEN
          RAISE EXCEPTION '%', i USING ERRCODE = 'SG403';
        END IF;
        CONTINUE;
      END IF;
      INSERT INTO "segue".operation (id, task_id, idempotency_key, principal, owner, ended,
          created, purge, breaks, bytes, data)
        VALUES (v_id, p_tasks[v_at], p_keys[v_at], p_principals[v_at], p_me,
          p_events[i] <> 0, v_seq, p_segments[i], v_breaks,
          octet_length(p_datas[i]) + octet_length(p_tasks[v_at]) + 256, p_datas[i])
        ON CONFLICT DO NOTHING;
      IF NOT FOUND THEN
        RAISE EXCEPTION '%', i USING ERRCODE = 'SG009';
      END IF;
      v_made := v_made || v_id;
      CONTINUE;
    END IF;
    IF v_id IS DISTINCT FROM v_before THEN
      v_before := NULL;
      SELECT op, owner, breaks, followed, ended INTO v FROM "segue".operation WHERE id = v_id;
      IF NOT FOUND THEN
        IF v_kind IN (2, 3) OR (v_kind = 7 AND p_events[i] > 0) THEN
          RAISE EXCEPTION '%', i USING ERRCODE = 'SG008';
        END IF;
        CONTINUE;
      END IF;
      IF v.followed THEN
        v_told := v_told || v_id;
      END IF;
      IF v_kind = 4 THEN
        PERFORM "segue".remove(p_me, v.op, v_id);
        CONTINUE;
      ELSIF v_kind = 5 THEN
        IF v.owner = p_me AND NOT v.ended THEN
          UPDATE "segue".operation SET owner = NULL, claimed = false WHERE op = v.op;
          v_loose := true;
        END IF;
        CONTINUE;
      ELSIF v.owner <> p_me THEN
        RAISE EXCEPTION '%', i USING ERRCODE = 'SG403';
      ELSIF v.breaks <> v_breaks AND EXISTS (SELECT FROM "segue".owner
          WHERE id = p_me AND away >= v.breaks) AND NOT EXISTS (SELECT FROM
          unnest(p_kinds, p_ids, p_seqs) AS u (kind, id, seq)
          WHERE u.kind = 3 AND u.id = v_id AND u.seq > 0) THEN
        RAISE EXCEPTION '%', i USING ERRCODE = 'SG010';
      END IF;
      SELECT coalesce((SELECT seq FROM "segue".log WHERE op = v.op
        ORDER BY seq DESC LIMIT 1), 0) INTO v_last;
      v_before := v_id;
    ELSIF v_kind IN (4, 5) THEN
      v_before := NULL;
      IF v_kind = 4 THEN
        PERFORM "segue".remove(p_me, v.op, v_id);
      ELSE
        UPDATE "segue".operation SET owner = NULL, claimed = false
          WHERE op = v.op AND owner = p_me AND NOT ended;
        v_loose := v_loose OR FOUND;
      END IF;
      CONTINUE;
    END IF;
    v_fits := false;
    IF v_kind = 2 THEN
      v_fits := v_seq = v_last + 1;
      IF NOT v_fits AND v_seq BETWEEN 1 AND v_last THEN
        IF NOT EXISTS (SELECT FROM "segue".log WHERE op = v.op AND seq = v_seq AND
            segment = p_segments[i] AND event = p_events[i] AND kind = p_types[i] AND
            at = p_times[i] AND data = p_datas[i]) THEN
          RAISE EXCEPTION '%', i USING ERRCODE = 'SG010';
        END IF;
        CONTINUE;
      ELSIF NOT v_fits AND (v_seq <= v_last OR NOT EXISTS (SELECT FROM
          unnest(p_kinds, p_ids, p_seqs) AS u (kind, id, seq)
          WHERE u.kind = 3 AND u.id = v_id AND u.seq = v_seq)) THEN
        RAISE EXCEPTION '%', i USING ERRCODE = 'SG010';
      END IF;
      INSERT INTO "segue".log VALUES (v.op, v_seq, p_segments[i], p_events[i], p_types[i],
        p_times[i], p_datas[i]);
      v_last := v_seq;
    ELSIF v_kind = 3 THEN
      UPDATE "segue".operation SET ended = true, claimed = false, purge = p_segments[i],
          bytes = bytes + CASE WHEN p_most_bytes = 0 OR ended THEN 0 ELSE
            coalesce((SELECT sum(octet_length(l.data) + 64) FROM "segue".log l
              WHERE l.op = v.op), 0) END
        WHERE op = v.op;
      DELETE FROM "segue".letter WHERE op = v.op;
    ELSIF v_kind = 6 THEN
      DELETE FROM "segue".log WHERE op = v.op AND kind = p_types[i] AND
        seq <= least(v_seq, v_last - 1);
    ELSIF v_kind = 7 THEN
      IF p_events[i] > v_last THEN
        RAISE EXCEPTION '%', i USING ERRCODE = 'SG010';
      END IF;
      v_fits := p_events[i] = v_last AND v_last > 0;
      DELETE FROM "segue".letter WHERE op = v.op AND number <= v_seq;
    END IF;
    IF v_fits AND v.breaks <> v_breaks THEN
      UPDATE "segue".operation SET breaks = v_breaks WHERE op = v.op;
      v.breaks := v_breaks;
    END IF;
  END LOOP;
  IF v_at > 0 AND p_most + p_most_bytes > 0 THEN
    FOR v IN SELECT DISTINCT o.principal FROM "segue".operation o WHERE o.id = ANY (v_made) LOOP
      v_evicted := v_evicted +
        "segue".make_room(p_me, v.principal, p_ids, p_most, p_most_bytes);
    END LOOP;
  END IF;
  IF v_told <> '{}' THEN
    PERFORM "segue".tell(p_me, v_told);
  END IF;
  IF v_loose THEN
    PERFORM "segue".tell_all(p_me);
  END IF;
  RETURN v_evicted;
END $$;


--
-- Name: enter(uuid, bigint, text); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.enter(p_me uuid, p_ms bigint, p_sync text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  v_sync text := coalesce(nullif(p_sync, ''), current_setting('synchronous_commit'));
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  INSERT INTO "segue".owner (id, done, loose)
    VALUES (p_me, 0, v_sync = 'off' OR current_setting('fsync') = 'off')
    ON CONFLICT DO NOTHING;
  INSERT INTO "segue".lease VALUES (p_me, p_ms, "segue".now_ms()) ON CONFLICT DO NOTHING;
END $$;


--
-- Name: follow(uuid, uuid[], boolean); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.follow(p_me uuid, p_ids uuid[], p_on boolean) RETURNS bigint
    LANGUAGE plpgsql
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  v_count bigint;
BEGIN
  IF NOT p_on THEN
    DELETE FROM "segue".follow WHERE id = ANY (p_ids) AND owner = p_me;
    RETURN 0;
  END IF;
  PERFORM FROM "segue".operation WHERE id = ANY (p_ids) ORDER BY id FOR NO KEY UPDATE;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  UPDATE "segue".operation SET followed = true WHERE id = ANY (p_ids) AND NOT followed;
  INSERT INTO "segue".follow SELECT id, p_me FROM "segue".operation WHERE id = ANY (p_ids)
    ON CONFLICT DO NOTHING;
  RETURN v_count;
END $$;


--
-- Name: gone(uuid); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.gone(p_me uuid) RETURNS SETOF uuid
    LANGUAGE sql
    AS $$
  SELECT owner FROM "segue".lease
  WHERE owner <> p_me AND seen + ms <= "segue".now_ms() AND
    extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 >= ms $$;


--
-- Name: leave(uuid); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.leave(p_me uuid) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  DELETE FROM "segue".follow WHERE owner = p_me;
  IF EXISTS (SELECT FROM "segue".operation WHERE owner = p_me AND NOT ended) THEN
    UPDATE "segue".lease SET ms = 0, seen = 0 WHERE owner = p_me;
    PERFORM "segue".tell_all(p_me);
  ELSE
    DELETE FROM "segue".lease WHERE owner = p_me;
    DELETE FROM "segue".owner WHERE id = p_me;
  END IF;
END $$;


--
-- Name: make_room(uuid, bytea, uuid[], bigint, bigint); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.make_room(p_me uuid, p_principal bytea, p_ids uuid[], p_most bigint, p_most_bytes bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  v record;
  v_count bigint;
  v_bytes bigint;
  v_evicted bigint := 0;
BEGIN
  SELECT count(*), sum(bytes) INTO v_count, v_bytes FROM "segue".operation
    WHERE principal = p_principal;
  FOR v IN SELECT op, id, bytes FROM "segue".operation
    WHERE principal = p_principal AND ended AND id <> ALL (p_ids)
    ORDER BY created, task_id FOR UPDATE SKIP LOCKED
  LOOP
    EXIT WHEN (p_most = 0 OR v_count <= p_most) AND
      (p_most_bytes = 0 OR v_bytes <= p_most_bytes);
    PERFORM "segue".remove(p_me, v.op, v.id);
    v_count := v_count - 1;
    v_bytes := v_bytes - v.bytes;
    v_evicted := v_evicted + 1;
  END LOOP;
  IF (p_most > 0 AND v_count > p_most) OR
    (p_most_bytes > 0 AND v_bytes > p_most_bytes) THEN
    RAISE EXCEPTION '0' USING ERRCODE = 'SG401';
  END IF;
  RETURN v_evicted;
END $$;


--
-- Name: now_ms(); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.now_ms() RETURNS bigint
    LANGUAGE sql
    AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;


--
-- Name: post(uuid, bigint, uuid, bytea, integer); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.post(p_me uuid, p_call bigint, p_id uuid, p_data bytea, p_most integer) RETURNS boolean
    LANGUAGE plpgsql
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  v record;
BEGIN
  IF NOT "segue".begin_call(p_me, p_call) THEN
    RETURN true;
  END IF;
  SELECT op, owner, ended, letters INTO v FROM "segue".operation WHERE id = p_id
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION '0' USING ERRCODE = 'SG008';
  ELSIF v.ended THEN
    RAISE EXCEPTION '0' USING ERRCODE = 'SG011';
  ELSIF (SELECT count(*) FROM "segue".letter WHERE op = v.op) >= p_most THEN
    RAISE EXCEPTION '0' USING ERRCODE = 'SG012';
  END IF;
  INSERT INTO "segue".letter VALUES (v.op, v.letters + 1, p_data);
  UPDATE "segue".operation SET letters = v.letters + 1 WHERE op = v.op;
  IF v.owner <> p_me THEN
    PERFORM pg_notify('segue:' || replace(v.owner::text, '-', ''),
      'L' || replace(p_id::text, '-', ''));
  END IF;
  RETURN v.owner IS NOT DISTINCT FROM p_me;
END $$;


--
-- Name: purge(uuid, bigint, bigint, integer); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.purge(p_me uuid, p_call bigint, p_now bigint, p_most integer, OUT purged bigint, OUT next_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  v record;
  v_left bigint := p_most;
  v_count bigint;
BEGIN
  purged := 0;
  IF "segue".begin_call(p_me, p_call) THEN
    FOR v IN SELECT op, id FROM "segue".operation
      WHERE purge <= p_now AND purge < 9223372036854775807
      ORDER BY purge LIMIT p_most FOR UPDATE SKIP LOCKED
    LOOP
      PERFORM "segue".remove(p_me, v.op, v.id);
      purged := purged + 1;
      v_left := v_left - 1;
    END LOOP;
    FOR v IN SELECT op FROM "segue".garbage ORDER BY op FOR UPDATE SKIP LOCKED LOOP
      EXIT WHEN v_left <= 0;
      DELETE FROM "segue".log WHERE op = v.op AND seq IN (SELECT seq FROM "segue".log
        WHERE op = v.op ORDER BY seq LIMIT v_left);
      GET DIAGNOSTICS v_count = ROW_COUNT;
      v_left := v_left - v_count - 1;
      IF v_left >= 0 THEN
        DELETE FROM "segue".garbage WHERE op = v.op;
      END IF;
    END LOOP;
  END IF;
  SELECT CASE WHEN EXISTS (SELECT FROM "segue".garbage) THEN p_now ELSE
      coalesce((SELECT purge FROM "segue".operation WHERE purge < 9223372036854775807
        ORDER BY purge LIMIT 1), 9223372036854775807) END INTO next_ms;
END $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: log; Type: TABLE; Schema: segue; Owner: -
--

CREATE TABLE segue.log (
    op bigint NOT NULL,
    seq bigint NOT NULL,
    segment bigint NOT NULL,
    event bigint NOT NULL,
    kind integer NOT NULL,
    at bigint NOT NULL,
    data bytea NOT NULL
);


--
-- Name: read_log(uuid, bigint, integer, bigint); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.read_log(p_id uuid, p_after bigint, p_rows integer, p_bytes bigint) RETURNS SETOF segue.log
    LANGUAGE plpgsql
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  v_op bigint;
  v "segue".log;
  v_bytes bigint := 0;
BEGIN
  SELECT op INTO v_op FROM "segue".operation WHERE id = p_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION '0' USING ERRCODE = 'SG008';
  END IF;
  FOR v IN SELECT * FROM "segue".log WHERE op = v_op AND seq > p_after
    ORDER BY seq LIMIT p_rows
  LOOP
    RETURN NEXT v;
    v_bytes := v_bytes + octet_length(v.data);
    EXIT WHEN v_bytes >= p_bytes;
  END LOOP;
END $$;


--
-- Name: refuse_older(); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.refuse_older() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'schema "%" was written by a newer version of Segue (format 2)',
    TG_TABLE_SCHEMA;
END $$;


--
-- Name: remove(uuid, bigint, uuid); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.remove(p_me uuid, p_op bigint, p_id uuid) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM "segue".tell(p_me, ARRAY[p_id]);
  DELETE FROM "segue".follow WHERE id = p_id;
  DELETE FROM "segue".letter WHERE op = p_op;
  DELETE FROM "segue".operation WHERE op = p_op;
  INSERT INTO "segue".garbage VALUES (p_op);
END $$;


--
-- Name: tell(uuid, uuid[]); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.tell(p_me uuid, p_ids uuid[]) RETURNS void
    LANGUAGE sql
    AS $$
  SELECT pg_notify('segue:' || replace(f.owner::text, '-', ''),
    'G' || string_agg(replace(f.id::text, '-', ''), ''))
  FROM (SELECT owner, id, row_number() OVER (PARTITION BY owner) / 200 AS part
    FROM "segue".follow WHERE id = ANY (p_ids) AND owner <> p_me) f
  GROUP BY f.owner, f.part $$;


--
-- Name: tell_all(uuid); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.tell_all(p_me uuid) RETURNS void
    LANGUAGE sql
    AS $$
  SELECT pg_notify('segue:"segue"', 'O' || replace(p_me::text, '-', '')) $$;


--
-- Name: unclaim(uuid, bigint, uuid[]); Type: FUNCTION; Schema: segue; Owner: -
--

CREATE FUNCTION segue.unclaim(p_me uuid, p_call bigint, p_shown uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
  IF "segue".begin_call(p_me, p_call) THEN
    UPDATE "segue".operation SET claimed = false WHERE id = ANY (p_shown) AND owner = p_me;
    UPDATE "segue".operation SET claimed = false, owner = NULL WHERE claimed AND owner = p_me;
    IF FOUND THEN
      PERFORM "segue".tell_all(p_me);
    END IF;
  END IF;
END $$;


--
-- Name: follow; Type: TABLE; Schema: segue; Owner: -
--

CREATE TABLE segue.follow (
    id uuid NOT NULL,
    owner uuid NOT NULL
);


--
-- Name: garbage; Type: TABLE; Schema: segue; Owner: -
--

CREATE TABLE segue.garbage (
    op bigint NOT NULL
);


--
-- Name: history; Type: TABLE; Schema: segue; Owner: -
--

CREATE TABLE segue.history (
    timeline text NOT NULL,
    breaks bigint NOT NULL,
    at oid NOT NULL
);


--
-- Name: lease; Type: TABLE; Schema: segue; Owner: -
--

CREATE TABLE segue.lease (
    owner uuid NOT NULL,
    ms bigint NOT NULL,
    seen bigint NOT NULL
)
WITH (fillfactor='50');


--
-- Name: letter; Type: TABLE; Schema: segue; Owner: -
--

CREATE TABLE segue.letter (
    op bigint NOT NULL,
    number bigint NOT NULL,
    data bytea NOT NULL
);


--
-- Name: life; Type: TABLE; Schema: segue; Owner: -
--

CREATE UNLOGGED TABLE segue.life (
    token text NOT NULL
);


--
-- Name: migration; Type: TABLE; Schema: segue; Owner: -
--

CREATE TABLE segue.migration (
    number integer NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: operation; Type: TABLE; Schema: segue; Owner: -
--

CREATE TABLE segue.operation (
    op bigint NOT NULL,
    id uuid NOT NULL,
    task_id bytea NOT NULL,
    idempotency_key bytea,
    principal bytea NOT NULL,
    owner uuid,
    claimed boolean DEFAULT false NOT NULL,
    ended boolean NOT NULL,
    followed boolean DEFAULT false NOT NULL,
    created bigint NOT NULL,
    purge bigint NOT NULL,
    breaks bigint NOT NULL,
    letters bigint DEFAULT 0 NOT NULL,
    bytes bigint NOT NULL,
    data bytea NOT NULL
)
WITH (fillfactor='80');


--
-- Name: operation_op_seq; Type: SEQUENCE; Schema: segue; Owner: -
--

ALTER TABLE segue.operation ALTER COLUMN op ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME segue.operation_op_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: owner; Type: TABLE; Schema: segue; Owner: -
--

CREATE TABLE segue.owner (
    id uuid NOT NULL,
    done bigint NOT NULL,
    loose boolean NOT NULL,
    away bigint
)
WITH (fillfactor='50');


--
-- Data for Name: follow; Type: TABLE DATA; Schema: segue; Owner: -
--



--
-- Data for Name: garbage; Type: TABLE DATA; Schema: segue; Owner: -
--



--
-- Data for Name: history; Type: TABLE DATA; Schema: segue; Owner: -
--

INSERT INTO segue.history VALUES ('00000001', 1, 16396);


--
-- Data for Name: lease; Type: TABLE DATA; Schema: segue; Owner: -
--

INSERT INTO segue.lease VALUES ('53656775-6500-0002-b7bf-e1174e868d71', 0, 0);


--
-- Data for Name: letter; Type: TABLE DATA; Schema: segue; Owner: -
--



--
-- Data for Name: life; Type: TABLE DATA; Schema: segue; Owner: -
--

INSERT INTO segue.life VALUES ('06aa5b7c-4c42-4e14-a4e4-4ecb6962a331');


--
-- Data for Name: log; Type: TABLE DATA; Schema: segue; Owner: -
--

INSERT INTO segue.log VALUES (1, 1, 2, 3, 0, -1, '\xb908ea580595567a9c35cfb0f1dc3a751bc005aae23f63ea489a2d1b554ccab60c9770b02a7af5');
INSERT INTO segue.log VALUES (2, 1, 2, 3, 0, -1, '\x317906e17c807e744c96bacb0f497649fc91bbcf5a72b0a957d84509bd65c0bbafbf7de61bca1bbd3200b4b748b268e0e18311068e311a2a957490c7e4a84599c84119fb1a7cd63640fd87a8d1664c90abb62ae816f02ead2a0352da4311d8f1ac781957b29485f16c5b51e349b5c0f9f0354bd2b7d93d722d1628e27d82a8d97e89d483e50f3be84277771cc3512b13e095415edd52b7efaca8ed5111a054f9511de8b6f7cc6685c8c205141c2b3dc1a6c7bf5656fea54c21912e45dfccdfc52b9c09ac63fa83ca46c9fb7503d8bcf2b15a105929412a6b203753bad8c1600f0d035635dcb23a0325f8d3cd49f3b832d5fcb21d84eb8f5395a20606ab66183ed00c2896e59c1bc8b45f50e460735bd1f44e9c52c428cfdbf70df9b3bf90e92f93893016729c6f7039a70519f2547929eabdff9ff9c3c555feca36374225f5068f8a9fed17e46a5a1382d1ab1d9cc799f234ba679dabc50a47c37c5159d03e8903e5153e235ec091b98a832471fff3f6aa73e36d461b8fed98519b49140b324ecf0608a412f56900e06f9c39152dcee7b3ae92799f6a9613efe102da145a4b208887154605de784d09e0141e8367ac201db364420cf3f0f5d0a123369c3f3b0b921c8173511795d12633997755903438d3c2c77eeba70fdac6e6f5b4405b3685d520bb9618f0770266a0856f4adbdf0707d1eaf34aa14b7f6e09bd');
INSERT INTO segue.log VALUES (2, 2, 4, 6, 1, 0, '\x34c250149167e99889e2f04cabda7f453a9d1a44c88eeaa981bb44158e6987b0b55bd779b0ce');
INSERT INTO segue.log VALUES (3, 1, 2, 3, 0, -1, '\x5584df1324b11c0e905a8869149ceb26aa2eb798984cfc6447');
INSERT INTO segue.log VALUES (3, 2, 4, 6, 1, 0, '\x0aeea89ce8ec0c1ecfb7380d71c4b797e681917f564b42f2954c60781a7b41cfd8d69a375b4e20c1b4de608335b31247bdaa7d76a29e93e5692724ca0c09294568a1ce5debe8370255ecbcabb30eb080df2f506847420c7b81a93c406fccb7302d55b9086e0432427ebe3b3b15874eedeb78186e39172f2f9c860d1a9d0a77ebba8557731864e22b29bccf1ea054813d32ee1b38823674653c3af59c176d37eb60058c9cf7df342e1cffbbef174b22');
INSERT INTO segue.log VALUES (3, 3, 6, 9, 2, 1, '\x5a4a8d63d5cfe362a2cfa3ea8f7093adcf39e68143826c1c9154eea6cbe9cd46a15be40f85b48aecad144da9bb8c25b87ce56d67e4cf29964cca9f0b0407b39af0cbb0137409313842949c9e64f4aaef85b2bd71d8f5f28be6');
INSERT INTO segue.log VALUES (4, 1, 2, 3, 0, -1, '\x48c9b707cd2c35117205959d61b566857dd1335af44e1f56af98ae14ff882fb1d8cb90a0daae6b7c51f220e4a021157d6289e1a862d1e8a0f6e29d2064e0c77a284084a00dbd89ee66');
INSERT INTO segue.log VALUES (4, 2, 4, 6, 1, 0, '\xa3fa445d55afbf30b02a7d27c20285f9ff969d384709e951faab5af09d8abafd079fb79f10858085b47c6bfcd4f3a9940aa508e03830f311e98674688d40c9bd8f55f698d38c78b397703a377debb7d7f4d036c85c51603f68aeedb889bfe28ee35e7aaded646985084072dcc6677cd75624c5e81d48b115cee35085497ad785df9391b8daa76986896de428585ac471963837c55926c5ed2a913df5a3326d48d202d07e980eab7cfc98253975');
INSERT INTO segue.log VALUES (4, 3, 6, 9, 2, 1, '\x2f70b3c5b4adf8eac19543abcabe41d96fad4cb8daa82c470108241409d888c51241f30706b8ac2c0b324b7a26c684fd7196f4dd54c4c5f6ff92dfc9f05fafc2f69c5ad75dbf0fe1cbda3e2f20e0ba55c6d7aa6bb58d501a93f96990634131c07f1b8b0da3e8bb9df09128dfa982083ce4d6c650f10f12820dab362eacb4eb51c1986940187334cb952689');
INSERT INTO segue.log VALUES (4, 4, 8, 12, 3, 2, '\x4a7b789411');
INSERT INTO segue.log VALUES (5, 1, 2, 3, 0, -1, '\x30ea940a2fde955495940ddeabbfef5e067bd529f9a722870bd7908ccbe058203b5bdd0e89173514b1426ed8fd069e0b966470e610f5546f16a28e40c842e1f6ac4570b99a33907aaaaa3a7e25396c9883bd46fce30e6ced05b609165615417c82edc5b004a6604ed01f4c5401fffeda8ae79c0f299c0e81c5aecbb34eefa50936997e6f1cbd39d42e0bb46f8f007665643b22e246144d4d291c6bf0fa1569e29f932a9a7dc5dade17e8d9cee6c403bc7e473ad4bed61e3e6dde');
INSERT INTO segue.log VALUES (5, 2, 4, 6, 1, 0, '\xe0fbd68815d2e6a859f419ec2a680d7ed0e4bcead1b49fe6865a5a0b');
INSERT INTO segue.log VALUES (5, 3, 6, 9, 2, 1, '\x8d2ad23b64e0ac0cd06315e21cd18bf274699eed033fd6891edfe5c33d2fceae748afac21fa6edf9abb70cc683037ed438d59b365cad0de373a85e50e6addaac061910cc9921adffeffef53dd3c83313267d4ea746b7804024da62da68464ad856885f62d48491ddc06e09e103e9930b53960105b8b07bcdb54e69004abd616e383e2fb22ae28a8a1fb390');
INSERT INTO segue.log VALUES (5, 4, 8, 12, 3, 2, '\xc333121cd255756c16ae2772d1e2cb460e96026e73b96153dbb9c230743b8f5b35cdcd71ff78118025b92944664533f9f61b9ae1c30d6f4c74c3e6abd12d8f2c5fbf2be373903ffa0cd165cb91d8562ed2cc511cae69e703c67fe7b97c0b0caee0b9667264f8ddadf76a36510298339b78efbcc8ab2e4dd2c3d8e2c207a70dbd4ddb9446243f5c7f15216ddcfb8c2b67c90eb22b99caa308f8af14a0c774c0d69463c40084e1991c239c61bb503bc9452bd03f61');
INSERT INTO segue.log VALUES (5, 5, 10, 15, 4, 3, '\x5144cfacaec3291ad749621e57a0c0acff963a31445e0be659df8e0498f6b938162ca9');
INSERT INTO segue.log VALUES (6, 1, 2, 3, 0, -1, '\x1cc91c635f41ded51959231ceef33b4ec05a1295a44e6988399a159c9a202571e341a1db8783a998b427c46a6f585a32c2f1559c8e272ac9d5134bb6d81909c0c4806549a6c3bbc8726fb421292ef1511fed662537912af0940ba03b5c24d3bf28871a7df629cc51807ded3143f7d167e0672fd741291dcfac84b8b02643667bd86dd530d20ac8b1585310c456b167e25addcd3f825d40dbe5eab656da2206aac529a3223845d75d766253fe440d15d0e1a427458a1ea8');
INSERT INTO segue.log VALUES (6, 2, 4, 6, 1, 0, '\xc13588fbcca9085435af');
INSERT INTO segue.log VALUES (6, 3, 6, 9, 2, 1, '\xe1505f4b0e257737918c0c98c7aea32cca46c2cc3afc222dfb6a3c17b1b1528912154fdbb3c2828f3b1cdf5dd40c3aebfdb7be63529b50eee7eb4d41eed0a7aa484499ab5662e272eb93a125e851a5286d2260a736b80c8c308fdc9452f125748d3ba45ed883d5fe1a50b7de6bfc');
INSERT INTO segue.log VALUES (6, 4, 8, 12, 3, 2, '\x8fc002a06d5ad68c70a2274f26b7d13188ecd613340100f67fc970eea25e01b20931c852ae8210dee35e0cb0fe72ce64a43c2f7b2703b58f776d92f131582ba80ed6526d9843fad75c74a7f292089225f0b6f3b995b9c65d9c1112004f0f92c78bc46035a13360c2a147ac21c421885543a50f396a');
INSERT INTO segue.log VALUES (6, 5, 10, 15, 4, 3, '\x2c02c10a0f0a8e43950cdfec3dcb4099ba7f534c7fd0da867fae7e880dabaa64d2404f40eac84ea8815c4306589a20ec12193d2941fbdeeb807a57587bf2a6baf6443c9310c7e17af32a70a7cad76fa23be627aec19800494e56bb6587a844894f84ed13b907c85e61fc78250820a1b4066ad713b717c7c6d2c9fc8607defc557a36b12ec370cf5ce4e87ba033950d9f1a697baadf5d6e4c5b044e176b7fa7ee1163fe2b7cd4f797d34107d416bc80abc61ce8f62d297adec6883613099bdf5e56d081a3970d81740452eda9e9fbd32927f79a2eed93c8979906c97849ea6edd37b0d960f0938956f485a814f42edf7f50bf09d2f4031a4bdde759cf62585e8a308eca389f7562766b61971125f913a5c68fd51563f190853e9d6fbf572243121050b5d653aa66bdb320436052dcb46f7b5809a93fe565f023ed2b9060848a6a0ad0f9b7335adb1a15e92d07188728cf595752d11e1a52227f167422be531c3da91b7b02498a160e8b483aac23');
INSERT INTO segue.log VALUES (6, 6, 12, 18, 5, 4, '\xbeb2c741d700e00183b65f6d5f4d08b3e894d7afcd7ccef115fbe329422f50606153697d3bc47007d6b0ce8e0359214b1fc457e563790bb5ab41b1ec41f2815f8691b32bc57ee67cc279d784018f1af8c2c08646b459ddccc9024816422ca1b32a2275e67d6cff71c9e85ed4dee9d1f80ee88d0c3b419ffd077f2828795711195fa2754291d850f25e455f6fc6212ac2e16656d131c1761146ccf4');
INSERT INTO segue.log VALUES (7, 1, 2, 3, 0, -1, '\x4603adf7f436042051a50132e1d092cb6b4b6550940e6f581d5a338dfa3478514c477f43dd930cd14d078f80140279a4335532567c1d5dd6ec824a1c17d3636969ea54482f3b09105a3791208099b7a353f8117aeeefe216da18a7');
INSERT INTO segue.log VALUES (7, 2, 4, 6, 1, 0, '\xdfbcd95bbd444f73004f0f2dfaada41ff3380aaa10d8054041b31231a4485c07c68d64cc378b2ae7dcb2c9748499d8ae7ef26fbc81e4c80bdbcacc054b175d9bb838069b2dc82c0a0af3dbcb517f625d5cf6f36164010991e033e83cb727bb052cabeaad14659729b61fa6572ea98746d8838c3ade');
INSERT INTO segue.log VALUES (7, 3, 6, 9, 2, 1, '\x80a516136a6fb6b23c2d118c8222dc43e80a4ba801fd2713cd040b08c5a5a12ff74c199d04a5d81926b9bd4c328c8091f0e3e4bc010f736600475dd941dd10bddbda24065f767b0d87c5a88be4efb608bf539a463805870fe9cc1f92d4fcce0be68d75669dbc');
INSERT INTO segue.log VALUES (7, 4, 8, 12, 3, 2, '\xd5ebc3dc30d92101919c85a0b4d2d5fbbee3fb8e9a873b34b74efa1e101fedf7ade7ba4995edfccd782d2a63dc41a3cb33f4210ab7420d48d6c9326afd44fdbc0ffc9656a2492d7463b3a42880426ab1021ececaaa1e33df03235ca9796212c5762418bd840684be723df6ef236af2fcf7601d6a975f1a13ed02415b2430cb0f43c6d7babbab');
INSERT INTO segue.log VALUES (7, 5, 10, 15, 4, 3, '\xd61328b6fd82b7430988e025b2621f7e6e');
INSERT INTO segue.log VALUES (7, 6, 12, 18, 5, 4, '\x9cb4d1790fe1358676591e1efe5d711857e40cd64a0f7ff6b46a75b3d5d7e98ab7879e801d7e46a69a6a399dbe5592e7add19cbe7f86fe39e710559ce7ea58fe637d4becbb310b33f073f85eaca35ec47a776febf358935cbbbf30a57bce559b976fa6fb69c62b7663b0446e8e50e8840af69f27e4796ef68dfbf50a6c48604c74ba235b63606e4c05dc0643ed1f3bc3e71c5714e2294309a55c741d9f98d14999a721b582687601fdc3aa583569d94c04449633286597');
INSERT INTO segue.log VALUES (7, 7, 14, 21, -1, 5, '\xd60366ce2c89f3ea05b64e6454f559d3b35bd999fa1e6ae3a39c50b6e7aae07daef5a3c3ee4e7e99335497fb920176b165d4beaf2a9889cbe63fde268a372089072509755881b81ea4a7db4ddc53ccd8c4c18ccd2b1d49d53c943b62d497e3d1f052078421a31bcefddf652d8de8e6a8710583c395c199de3ff0638ccb2fac498a845988613d15c323bcc7cd38e32cac531e9e17532b268ec1');
INSERT INTO segue.log VALUES (8, 1, 2, 3, 0, -1, '\x6ad46d9015cca23cdb8751c03924aec7414aa8f09edff3c7c21c049addbba611a8c44770bdf9db3d533c77c1c618b98a708affbb308a76ad194cb075fe0ad83341bd476c8a8333ebfbec7729dd40c5e21e8dd6aad6c3f996ad4898e3c83598e7c4adced83bde8e251e6b8bed1a1f6239dbf01435e36b734625117a4ebc6a02595f369d907eb72d574b875755410bfa1bbabd495d6b995171db4f47bc66266d38103d75');
INSERT INTO segue.log VALUES (8, 2, 4, 6, 1, 0, '\x372c16b20919f467fec05cbb77ea6cf358dcd4c5fd0920ae24cfdd3739ec76a8e0d450d93ef25ed64718f1f6a7cd7cba5b3319dafd472e03a54f7c283db94da7d747baf89cce9f19a1050bfe7c5e5c6f5fa0d16906df9e5e04e485a046cc6c8eb178359666df63d6b6f2b6af61c50f673dd9b0845607aeb7b63112877ae413390442fe6084f172c4ad8112fcb657d4c149cb5a');
INSERT INTO segue.log VALUES (8, 3, 6, 9, 2, 1, '\x2f81b8cc4307de9aaebb6f89ef261f0208f92e99e3f8989d6739b76044d5aa714a89eafb77670b6d635ea2b9105bf03c631351564deca48352291c14672415daef354edb80980365757e3e626665e894c3d26bd8f0bb7e0ca1684475db5f89e0d76e71a835d78e98a3dba8c8878fd87d');
INSERT INTO segue.log VALUES (8, 4, 8, 12, 3, 2, '\x04067dd401240795e6166c03c54485b39353e833d8cb27dc33c0c4d23b0ef3c2a59988e8ad80c26a998f648cddcd3482ad743925624502215e6ae75840d4cdc8b1bf13cfa8c4d6303c02872aa8bfccffbd35ccc4e90f4a7114bf4b50fbc0719492c9206071a50b9a3d5f');
INSERT INTO segue.log VALUES (8, 5, 10, 15, 4, 3, '\x7ebdb0aa88816ededa8869987b6edb62c2772b89bc75237cae8ef12b7f7b1566961cbab5cd');
INSERT INTO segue.log VALUES (8, 6, 12, 18, 5, 4, '\x1e67a358ca98133cc839472c5bf8ed97822b8756977d83b238815d033f0eb0e47f3d0e396f9b292319aa9ea6e4bea984c2aa0cdc70ed33f17b395e85b2d5c730e88c8bc0667c07887a7733d8ade7');
INSERT INTO segue.log VALUES (8, 7, 14, 21, -1, 5, '\x2605884b91ce5a48de7baaa4e98a3cc68dd23034377db669eec83331efdf3c68351dd8443555bc6bc1ae8729a8a3ca73021873660c2f295a975d3830c08a9a3d3b85e02f45658d5aef8df9d300987e7187a9ca2447ebdf0ecde028ba369b8cbc1afa2fc89b04720a59721783e8e99b5e3fe616e8e2fa181cb080a9af211858f4b58f063d433a1d4ca60bd301b8cc95a09eba31e92dc32849834c2d47918b58bc29d30c7122a7c949b0bf482ea884a4f3082267f63e2a7906df8b8d6e877f132c36a667b27cab106f9db98e4aa0dbd806bfd5529e52bf737a3216d8a9dba15e7199bce3401082c4b03153b91b4e26e970ac4a8d9d2064ea7330504c8dfc48fedf4340d411355d1abc0b41526502c0b13f232a3cdce4ac13fa45a1a7411a75f9d38680fded8d2cc60c5cd9d72290eeceb98bb1633e79bdd1f3e0f03d6cb05ac73c8f9bba8ba9f7aaafd2266b57e9d69205cd10e0e886b924149e708019b1f765e7b539d40b3bc708cc94e9596d88abdbf3d7b7b23156c831a834077a4808dedb510ae9306a994c0c53e55f2140c5e038acecdbc85a3c9d40bd13eb3d3e5a6a05f4e1f99594e45944ed2907fb038a217a56cb545891cb976522c4e76bb86a67ef9ad25c960c1a4fb392dd9b87d469d4a33c98009c7302caf95228327a3db594b1c1dd49835d705f75cd2beaf5d6ae2063f3ef5c4c');
INSERT INTO segue.log VALUES (8, 8, 16, 24, 0, 6, '\xe9963eb822303577ba6e7dda52c63d46e5d68ac2b736bbd26a103bf2a51788dce2c61d20bdba77df275384b464e0f7458a52f01db6a4edbb8d73');
INSERT INTO segue.log VALUES (9, 1, 2, 3, 0, -1, '\x2d73664b360070a626eab1d7402498e39a3e803a80c8b0334acccde80969a524168270472d304f780622b7d651058ec5f4cf6dc5c29df1a1658689ec0c496bcd5bd6e5ef0ffce1a6168097c15c5500a026a7f5a451050d6d39f1ef0c2c0d');
INSERT INTO segue.log VALUES (9, 2, 4, 6, 1, 0, '\xe93c9ed35de365a9ed338677905128abc5b200e868edf0c647d5dae98b45dc290045b60049e61790430cfdc88e35cf278e1844eb59737f801cb8c6dc0277c58708b6005a4fd83250d6fa2326e313bd1c6e0571864a58f761033be166add58f10a06868e97d4e6b1085950109d9e01d133bea485c4bce8dcc64330e9490fff21db25e04c5198325e62c8f1eac5f5641a1eb76ed780f49f557a6bd2c54ccd1e019ddc92f6e3b199447abeff7a58ddd1538c4d26263059fb9c094436ea93d9eb046c59ec7fe');
INSERT INTO segue.log VALUES (9, 3, 6, 9, 2, 1, '\xed');
INSERT INTO segue.log VALUES (9, 4, 8, 12, 3, 2, '\x5fc947942b502cc7eb2a179db7508f221cb14e626ba17c48efaa483e309ce998fa0225662ae3a033c52fc7ab91797a7b9e4fbca1abd43db90ae8d4');
INSERT INTO segue.log VALUES (9, 5, 10, 15, 4, 3, '\x69ee03fc998c2a7f7d1724ba');
INSERT INTO segue.log VALUES (9, 6, 12, 18, 5, 4, '\x421e36d4f29b422da90996baf5b51205f133f2840585c3a5b7e4b93a89676c29998bddf166ebcc8b1cd850865ec636080315f949e4f9757128f672338030de0bf95d79c40784026021bfd123c2dd5fbe4f4d69f48b4d281d8826ba');
INSERT INTO segue.log VALUES (9, 7, 14, 21, -1, 5, '\x82cb6dcf7a79e42b55012ed18f1c14f5e9b86a8efea243400d900115b1c7f37bfc62efd03615995582c1c4004870959319f140228af15bb5f7c52822bd5ca83480519f2ad7922e0e50a70ad99db6417b1d86fc73f6292c577ed9791b23dfc7e57b013c0a12d3b50015002a80f7729eddb6');
INSERT INTO segue.log VALUES (9, 8, 16, 24, 0, 6, '\x41f91c36a3dbfaaa0a089fd13992d26c3cfa713387697a2bad7e93bc1c9786ffabdc30cad1a47808dc95d7c57a170ec16b4a32f1f5bf234cc2aac89ded3a532e6fde1b6a475c99eb35960be5b35806a2c5d11ac7cc7a49eaa782afaf6640d5141da51545166e6e7dcee3941890cd2be4c5');
INSERT INTO segue.log VALUES (9, 9, 18, 27, 1, 7, '\x0131415fb840af4a4a229a3a9b2cb1acb182c576af9c94a546470df0ebd8364c504384e9949f59e3fc4c2fa5a89939b334069be0e6070c');
INSERT INTO segue.log VALUES (10, 1, 2, 3, 0, -1, '\x7b229d0650d9791114bae29ce8f91e53aada5305f8a8e77857cc396a632ebd81a531fe9848c5f12922a19b4d7f8c6d95774ba4c06cc64296bb18350f65e2481791c40750f4b027d0cc29ae4e66c3bb761a05e078f55d0ea52d0aaae50ae5b106881e63e7f2dd6bb74f11ea431a781dc3e8b2aa61bf888d');
INSERT INTO segue.log VALUES (10, 2, 4, 6, 1, 0, '\xc63f51733a498af16b58c0815287f55553a54409b9735eaa931cbfc834f7a69c34e0c217b7797b33d2ee7cb1a200ec5e5603975355845f5406aa92f54cec4724468626b1f7f159538c399657bbaa2e9f67157513f91cf6b6fd09ce79fc');
INSERT INTO segue.log VALUES (10, 3, 6, 9, 2, 1, '\xaaa6f37d8defb2426c921c456653a1ba9b6a1f25821a9d46f17e50c393fbb6ef541f9552e141fd48841b892e5e31c8f1b1143d1bf0f86e716cadf4717154471505ecd97c32b8f3e8320f2dbbf5299403edbd428f291aa45fa780947fcb6f615b7119d836f06bd8704ec74701297213ff45ed0bccfef06b66f343acbfefe669795f0bbb18d9deed83b6ebdabd83378769e0ef637448dc491eab0fbde44e930e592849002d4f5865df15510615555c767dd1d5aaf4e8d6d2b257ecdaac439ab63af3eaf63255dd92a72430c15f29513f59a80993b469a39ba1a4ae820c5e7101801da781dbb18cb5106fb984da39cd1778307838696447a8fd7e9345bce55b8c5dee1c879f103274f9130e542b87b80dd3282f28dc38a808c44df6ef94dee5ed6e8d38f2842ae288c4bf5ca86dcc8bc4dd1fb0a15c351ad367fba4ec04d55203b743f7');
INSERT INTO segue.log VALUES (10, 4, 8, 12, 3, 2, '\x259510883421a12c6a5dc96334e830500318b4acea012adca13dc03c6831b80dae0f8e89f882ff1b7578c5367263a1876443b7350413634c7bb58b674f258bc215a6e160c7bdedb08cec60ee6b16f2429f51b2da6c9a793e40384275673163ba5531548d5ec19a2f9a6a6f1c95c2ad86c80a4e0c7799e8055caac9f3d4f0810481d975444dddf97e7f092b944e0ac9d5b7546a88816ee3e3f97a39873d8e8845c7fe93a94ce2b5d0f66ee29d');
INSERT INTO segue.log VALUES (10, 5, 10, 15, 4, 3, '\xfb98935d812235d579747686812126dcd4d992bedd6bf08ca49439542d21ff06086fc5ef7fb5e8f32744f5dd879055de48b9e2caa50fe5d88aa3f5aa83ec28fa984ce4ef7ea5dba511de02aea86e583925df86d9cdf4b41bea5b67368ffaa140a0f3824b903c1a13e28b9afa29c3e6eab3d3a6f485afb950ad5eed715e9c7fe985a6824602c2d04725b5c4350d0b151c1a5346d3a21fbf303657e5f4fad127ce52b0b3900719392b9fdb5e77536aa5326d8e');
INSERT INTO segue.log VALUES (10, 6, 12, 18, 5, 4, '\x31ef6fe5854e385720a6ec11276040bf207af0ad7c2f15a8882880799bc93154471cb359a00f4ae8e3843d23002c0e433d1a9a0a692eeb9c398af891fb42042b3d8fa528fb2c');
INSERT INTO segue.log VALUES (10, 7, 14, 21, -1, 5, '\xcc7a2eb4939b4fcb2ec914644fce30b6b76fe19b01425ef2aab3');
INSERT INTO segue.log VALUES (10, 8, 16, 24, 0, 6, '\x87672438a4abead84c7aac76252c36272b708503be4c8a88b54c303940c94c715da9488847b0e50c9c667c994f16d82c073137b5a4c0ee4b1d790ebc0331d3e36b9a9be3fcf12200eeccd5ced39ca6bbeb57e63d2a971421d75ddc4c8e04235cadbcff9726debb329e8a4f7181949849e986cd57a35b1e594778e3158ab0d15e5f8444539e6a4f89abdbd0aa1e03dab3d82786c2c2738bf61017de424c3b21c464');
INSERT INTO segue.log VALUES (10, 9, 18, 27, 1, 7, '\x395a17cab2ea58822088b5c34a37746992dde2b1807b2547b0be15ff1d9aee13a2a1fafdb2ca99ec5c555bbdeab77899114a2d4a9774f6f469ec0b02f0b9621d70ce0909320cf27d4c8b107db9fa03cbd1b052e9b9e82bdaf0095858bb93988893339ea2a853027c82389fe8bee0bad8748701774243abe3b542ad442fedab58c2c3a1f6af430e6ed012e82a92b9d48e98f45ec7cf559991bc26e946b2498143662733');
INSERT INTO segue.log VALUES (10, 10, 20, 30, 2, 8, '\xaa4e134742e3c6b73189a7db702e2ee79b5d65e9ebbe7d598bd8ad8cf6a257037cb4bca0889e828d630d95d7015613ea53e795991b11');
INSERT INTO segue.log VALUES (11, 1, 2, 3, 0, -1, '\xe572834c3f16b8fd750b79c5404fcfa5e941fd978a411fec21f7361a686bfca37f3e0d33c56bcaddca64f53b4be9ee609f3b792ce3618f299e3f7774b31b3eae7871b6bc8a60ec9027458a6e72d18b20fdc9550f4ead9fdbb228fae4f3d893652533f40009a5debea0d91433ca72f4b821e66239be87a862af9e237c76f46e32424026c3d6a9475f340755109c8bf34df9bf2d41c4fa4100ccc18ece93fc714b193f3a9e420976c5e59d7a7fae2da5a9a9d7775235b1477ab198f18124bc967bc5e51708407d1e395bffdba9fae4181b3e6bf4895969d155745b82909750f6237fb3c43e013bcdf95ac0fb7097b6db27eb25ad5b9d1bee1251d6ee261f72aeb94375bc82c7ada422027a3c21edde9ec7efe593d8379cc5d2edac3834104ac778e0af1fe1a9bdb5441e54489d5a672ba24301df');
INSERT INTO segue.log VALUES (11, 2, 4, 6, 1, 0, '\x157a4a0590342b7d9f047023e9fa49231294b96f0a579119255e298f8649908890838ce58d055b9fc85b511786f358b7182af63f991a968cc8ade824042822ca7f9d4500d83b5304616822f3538e520727e230f9109a75c9188b7e0fb44d3ec64c16f232c045fb0866bffa711b90a8da4991cd7f6a7c2bb134027289892df1c63078f39100f058d35aec3169f343a1cac03aa3ec45f422d399f6f59b21674ebb25611f1629a939042f4ab228bbe886');
INSERT INTO segue.log VALUES (11, 3, 6, 9, 2, 1, '\x2daa60f6f41e6888c28fae1e07f48c0a69f3d5094c8b05cc9dea1b2ffd8521f2348eced5a1f2f7c18ced91510e84b0f9fbb8d7a17bc46b30d880e32d7557b579a4f7388b30f5dd264f8ab5089f06af39cc2ce30989edb5ed7c82f1828e0b9801e410e9194f3f45031148ed4b840b');
INSERT INTO segue.log VALUES (11, 4, 8, 12, 3, 2, '\x1b9404b761dabcd32c73adda11adac23d684c31c2e051bcb5678b74d0b630abf0603a9e5c4e1fc9937677c7515a1b0f7a94df66a78bcd9ebb2b164d1c0a66fc1d4b2b5794336a7c6a597eec75735761de5077611944036dc7d5fc83ba8ea1b0985e24fab7311b13bc0ae733b02b3ee149d9eb121905b2e9205812a320f2f4c373bd9f0cb78b5e036906c1e539c9add60e240e2287a160477d92f5e8e8595fcbb10e93371fe7b6ae17809c758e4f0ac28af4719f56facb0100212185166503c01738e78bf88099c62e61a4c0984981697af36b3c3c1f73932b36607e76455d157fe3f8fe75454a2e286b5773081295285c4a1b67a2af145863931789278d77b5e2fc8d18a4120833229ff55a7099ade7fd4462308d8c7e16f6ebdb85a7159afafd664bb4ab3f3105e6bdd3308f338f12060f81c74e8e952e4091a59a50e8c7c07b811c137eb229deda930f2b6278eef18090812c7a1fd892d5299b178fc8918a8');
INSERT INTO segue.log VALUES (11, 5, 10, 15, 4, 3, '\x556dfd26ec353d36408f46a5421c7cdb7d2d8d817e8513e35cf60ead281fc5a6a7ed17825039762e6bf4cf9641c5d62474e53078a34c7743a02fc9a917f390c6f19c5b5cfaa515e29ca8');
INSERT INTO segue.log VALUES (11, 6, 12, 18, 5, 4, '\xb7fc6563b68068dc2d68c54a0f8fcae3ef5423d8914a69beeaecb4f8decafe3ab04306c3e1fb78e49238f41f77bd7da3a59bf9fbe8063b4b30c854cc70094a2b4592175d327674');
INSERT INTO segue.log VALUES (11, 7, 14, 21, -1, 5, '\xb489404973bd1d2bf22edad9ba354069197ec37ee7cb05a51411cd87761ab7f83d67b00f0814175667a3578444412791d13794a378f48fda4d0a75458dad9df175a259a763174a6a6656eb54940fcbd9032b348e2276a71a6df19c072a2b371ce5');
INSERT INTO segue.log VALUES (11, 8, 16, 24, 0, 6, '\x69aed574634cb43d707923e4422513bd5ad823f3f5b7724c7419dbe6cef4262f47c0b17a199725318a142949cdb11d2b69fda6a81422979eb40d051b41f8046b5364d6b7b116270357');
INSERT INTO segue.log VALUES (11, 9, 18, 27, 1, 7, '\xc7fb2f7effcbce832aafde2cce0784765078d0');
INSERT INTO segue.log VALUES (11, 10, 20, 30, 2, 8, '\x752d34e33c880a4e9f9881181de46dd3d09b6ed56bd711dbf8e1c807adec11506f130aaebd9023d43cbdb40f56cfa0e39467c217eef4ee8b37365ba02c7f6e90488b6020d641e299eecc5ff0');
INSERT INTO segue.log VALUES (11, 11, 22, 33, 3, 9, '\x0dba51922f40246b58dfbe32230422c76e490015d77832600f4a8ff8809de52e260f7d72b1f2e17724');
INSERT INTO segue.log VALUES (12, 1, 2, 3, 0, -1, '\x82d622bccbfd592545da3a60668ccc144730');
INSERT INTO segue.log VALUES (12, 2, 4, 6, 1, 0, '\x802d72d2f23fb6fd7adc36d67b97c95d59f233a65058b82666b1a692e13aeea2071a95746be4d4071aadbf9861ad7ec58374c596ba84adcdd1b9f61bc936a89aefd108b15c415653fbc3e33a29f56245fd623d6468b173a65ce79b61f284080b3292e4c6dcd7dcf0b0b890b40b90');
INSERT INTO segue.log VALUES (12, 3, 6, 9, 2, 1, '\x57d722130dd852f113c1254bff22b4744c030b63119f04653ebbb7a2824ca622d02882c6b7565a8bdda13cb368ce6a9c040a433af7589b0cb5126f199f0e9d8902ed0f66cae66f7ae277138929e4');
INSERT INTO segue.log VALUES (12, 4, 8, 12, 3, 2, '\x8a3148893224a84456d57f4d8d4c2376c92729cf9cde705fcc3968bbb23707e4d7ceb990e5df0ef93d81c060a2c559a0a84ccd63f5407621caee3151364bb28d288893d68c1914853d7c1287c4af25ed21638095935e6115adbac867f52642a9c283a56f91d6b94ec304020159e40af9c9c959d2d16777bfb5f4e92ef4a851a3d069a139aeeca20110bc5c0bc54161269f331db48f3995f8b8fd1ef15b9f01f61f59fb3b974ab1e0bc8f7039eb725eeedb0efae2b6287a8d1152ee1dfa0fd8e800c7cf28b041a967ea3125a3deb371bbf0ab5fa49d4917cc093018db1536842654a999998868cea6edefbb145a8c9150');
INSERT INTO segue.log VALUES (12, 5, 10, 15, 4, 3, '\xad5454f5bc74b369248bcc7b29ce173f48124bfa9b1b06ea5dbd40238fe27b0746cf380f1441f76fd3ae3841890996b3c66a3766f3d0d2ba709bbf88a155be8abe7bbf31310e1e03fad1782bb4362e73d42c57ff0eda52aa1ebec6d8917de1611df32d3e953120795f19ad6ecd0fe24bf194b33d541d402b776ed5c00b025495db79d58e9ff897faad1074f03aedcd1268dc6ac0e6c2a91289e30ece4df060f583d22edf30620fc924142309772d853a6ae0dc5b41af2a1baa0b4fd28fab5ba2bf5447c3c475f633d281facf56151e976a495759b87825b5c9e39308d828b1c3811d4278cce82053e5910684681b1abb1fd44a7bc0b26413c7da7e94767db28a5c5c0d8a1d089ff2c1f11099c8e14f9a87d63e445a876f3060e7973d0ec186cc4cb892698e8e38e6cad3c32dc3617e382e69ad08c42dc11da09aa7c4335bfba062d01cf2f0ec8600adb382f2d197d5708a9fde01b6ae9002a07d8804547209301de0c4b20a11c693a2eb2fcf65c54e3bff718f2f582ecdb0c7f3115dd19204c32dd7722700590a5d0481f638cbafb24999eac244e0ac96aa0249ed6cb795f43aa6576082a1570dfe1f406a206c663bf31f2e780fd3257728082099588c4ef1b3f4962a2e2753f363517da3365e6d');
INSERT INTO segue.log VALUES (12, 6, 12, 18, 5, 4, '\x8ae8410dc881a68f9a30bb77f022f210c6cf0a3f8be6915e5dad88ab4a');
INSERT INTO segue.log VALUES (12, 7, 14, 21, -1, 5, '\xc35a917b76748449f859846e1fa574ffbbb43732413bc99978a794fc66f3066ad1d9f7a07c3a5c7b5be7cf82a2b385c1068dfe8264af92cc0befd6efc422fa4ac8feefa90919ac293039fb717e61340eef86e8c21889');
INSERT INTO segue.log VALUES (12, 8, 16, 24, 0, 6, '\x1e810540d9b4ac190542c753a1669bd46ddadd9c06b873f8113fda96cedbe24ad15716');
INSERT INTO segue.log VALUES (12, 9, 18, 27, 1, 7, '\x453b1ceaa0ffd37644fc08ba5b3e273f71b56bcedfd0e288dbcee55720fd6c80279334f5ce368a171a189789d6');
INSERT INTO segue.log VALUES (12, 10, 20, 30, 2, 8, '\x388029022836d565948456920eb476f020c60d1fda96bf996f758747585eb8b930733b4539e24d3f9c1a06dbbccd404467dacafb39f73f127cd939e5272ac004e71a90429c58ebe8086515776c6f62c6b85cbebe0f8bd7ba55be91740bb8cdbf70c902f15624c6e4b743ce256c3b099324a30787c617a7982901043d3ee5eb7b2ee27fe883288780da74155a23cda02828933ed5ba4a1f5e61ae23c94ce2f8bb46b6e0e6090c4a3016a2e441c42b2d2c1b3745f1a41a7c1cdf2a0163');
INSERT INTO segue.log VALUES (12, 11, 22, 33, 3, 9, '\x1ce124f5ffdd6b9d6c32adeb33702810941acf7e09c357a633f2a747926c1dcf6f3996892fa1b6ec9252bba4ad829b932bc2d0caf74e7cd9fd2dbf1252e9be0273a3a191f4c1fe038b79b559abf305d61b740f92eb5f3c532bb87b5b30850b0ca05cc9b5fb4fd0e1b38f35ec3df70fa3cbe63dcead570b6a6b6d616db76df88be7a7abb11a7db943bd07d05df21541452d272b5907472848f904e1c8c61f64af4b53f4e2465ffdeb4766ff9617b8b169170008d2ce843908bc50954bc49455969c132d');
INSERT INTO segue.log VALUES (12, 12, 24, 36, 4, 10, '\x101877e0edf672ce89774d99d93392347791f70895839c778cee9418c8ab3628d251c89ea91bef8e6dbc46ab130838d9a10e7e8061e0841c766f625be0f8e32b96eebb1321eb900e17aa3145dd8062c2e299b1b303f3df0768b4a50031630e498999e7862b81098881a66a1bcbae48ec560698aab3c384a2f454a06524242b7dfea166cc0fd65a29178f94cca500a153833d14bcb651e3');


--
-- Data for Name: migration; Type: TABLE DATA; Schema: segue; Owner: -
--

INSERT INTO segue.migration VALUES (1, '2026-11-28 21:55:00.083872+00');
INSERT INTO segue.migration VALUES (2, '2026-11-28 21:55:00.083872+00');


--
-- Data for Name: operation; Type: TABLE DATA; Schema: segue; Owner: -
--

INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (1, '01254a6f-95b9-de03-294d-7297bde1062b', '\x7461736b2d31', NULL, '\x0101010101010101010101010101010101010101010101010101010101010101', '53656775-6500-0002-b7bf-e1174e868d71', false, false, false, 1001, 9223372036854775807, 1, 0, 274, '\x7265636f7264206f66203100');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (3, '03254a6f-97b9-de03-2b4d-7297bfe1062b', '\x7461736b2d33', '\x0300000055555555555555555555555555555555555555555555555555555555', '\x0303030303030303030303030303030303030303030303030303030303030303', '53656775-6500-0002-b7bf-e1174e868d71', false, false, false, 1003, 9223372036854775807, 1, 0, 274, '\x7265636f7264206f66203300');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (4, '04254a6f-90b9-de03-2c4d-7297b8e1062b', '\x7461736b2d34', NULL, '\x0404040404040404040404040404040404040404040404040404040404040404', '53656775-6500-0002-b7bf-e1174e868d71', false, false, false, 1004, 9223372036854775807, 1, 0, 274, '\x7265636f7264206f66203400');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (5, '05254a6f-91b9-de03-2d4d-7297b9e1062b', '\x7461736b2d35', NULL, '\x0505050505050505050505050505050505050505050505050505050505050505', '53656775-6500-0002-b7bf-e1174e868d71', false, false, false, 1005, 9223372036854775807, 1, 0, 274, '\x7265636f7264206f66203500');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (6, '06254a6f-92b9-de03-2e4d-7297bae1062b', '\x7461736b2d36', '\x0600000055555555555555555555555555555555555555555555555555555555', '\x0606060606060606060606060606060606060606060606060606060606060606', '53656775-6500-0002-b7bf-e1174e868d71', false, false, false, 1006, 9223372036854775807, 1, 0, 274, '\x7265636f7264206f66203600');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (7, '07254a6f-93b9-de03-2f4d-7297bbe1062b', '\x7461736b2d37', NULL, '\x0707070707070707070707070707070707070707070707070707070707070707', '53656775-6500-0002-b7bf-e1174e868d71', false, false, false, 1007, 9223372036854775807, 1, 0, 274, '\x7265636f7264206f66203700');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (8, '08254a6f-9cb9-de03-204d-7297b4e1062b', '\x7461736b2d38', NULL, '\x0808080808080808080808080808080808080808080808080808080808080808', '53656775-6500-0002-b7bf-e1174e868d71', false, false, false, 1008, 9223372036854775807, 1, 0, 274, '\x7265636f7264206f66203800');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (9, '09254a6f-9db9-de03-214d-7297b5e1062b', '\x7461736b2d39', '\x0900000055555555555555555555555555555555555555555555555555555555', '\x0909090909090909090909090909090909090909090909090909090909090909', '53656775-6500-0002-b7bf-e1174e868d71', false, false, false, 1009, 9223372036854775807, 1, 0, 274, '\x7265636f7264206f66203900');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (10, '0a254a6f-9eb9-de03-224d-7297b6e1062b', '\x7461736b2d3130', NULL, '\x0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a', '53656775-6500-0002-b7bf-e1174e868d71', false, true, false, 1010, 12000, 1, 0, 276, '\x7265636f7264206f6620313000');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (11, '0b254a6f-9fb9-de03-234d-7297b7e1062b', '\x7461736b2d3131', NULL, '\x0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b', '53656775-6500-0002-b7bf-e1174e868d71', false, true, false, 1011, 12000, 1, 0, 276, '\x7265636f7264206f6620313100');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (12, '0c254a6f-98b9-de03-244d-7297b0e1062b', '\x7461736b2d3132', '\x0c00000055555555555555555555555555555555555555555555555555555555', '\x0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c', '53656775-6500-0002-b7bf-e1174e868d71', false, true, false, 1012, 9223372036854775807, 1, 0, 276, '\x7265636f7264206f6620313200');
INSERT INTO segue.operation OVERRIDING SYSTEM VALUE VALUES (2, '02254a6f-96b9-de03-2a4d-7297bee1062b', '\x7461736b2d32', NULL, '\x0202020202020202020202020202020202020202020202020202020202020202', NULL, false, false, false, 1002, 9223372036854775807, 1, 0, 274, '\x7265636f7264206f66203200');


--
-- Data for Name: owner; Type: TABLE DATA; Schema: segue; Owner: -
--

INSERT INTO segue.owner VALUES ('53656775-6500-0002-b7bf-e1174e868d71', 94, true, NULL);


--
-- Name: operation_op_seq; Type: SEQUENCE SET; Schema: segue; Owner: -
--

SELECT pg_catalog.setval('segue.operation_op_seq', 12, true);


--
-- Name: follow follow_pkey; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.follow
    ADD CONSTRAINT follow_pkey PRIMARY KEY (id, owner);


--
-- Name: garbage garbage_pkey; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.garbage
    ADD CONSTRAINT garbage_pkey PRIMARY KEY (op);


--
-- Name: lease lease_pkey; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (owner);


--
-- Name: letter letter_pkey; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.letter
    ADD CONSTRAINT letter_pkey PRIMARY KEY (op, number);


--
-- Name: log log_pkey; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.log
    ADD CONSTRAINT log_pkey PRIMARY KEY (op, seq);


--
-- Name: migration migration_pkey; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (number);


--
-- Name: operation operation_id_key; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.operation
    ADD CONSTRAINT operation_id_key UNIQUE (id);


--
-- Name: operation operation_idempotency_key_key; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.operation
    ADD CONSTRAINT operation_idempotency_key_key UNIQUE (idempotency_key);


--
-- Name: operation operation_pkey; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.operation
    ADD CONSTRAINT operation_pkey PRIMARY KEY (op);


--
-- Name: operation operation_task_id_key; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.operation
    ADD CONSTRAINT operation_task_id_key UNIQUE (task_id);


--
-- Name: owner owner_pkey; Type: CONSTRAINT; Schema: segue; Owner: -
--

ALTER TABLE ONLY segue.owner
    ADD CONSTRAINT owner_pkey PRIMARY KEY (id);


--
-- Name: follow_owner; Type: INDEX; Schema: segue; Owner: -
--

CREATE INDEX follow_owner ON segue.follow USING btree (owner);


--
-- Name: operation_claimed; Type: INDEX; Schema: segue; Owner: -
--

CREATE INDEX operation_claimed ON segue.operation USING btree (owner) WHERE claimed;


--
-- Name: operation_listed; Type: INDEX; Schema: segue; Owner: -
--

CREATE INDEX operation_listed ON segue.operation USING btree (principal, created, task_id);


--
-- Name: operation_open; Type: INDEX; Schema: segue; Owner: -
--

CREATE INDEX operation_open ON segue.operation USING btree (owner) WHERE (NOT ended);


--
-- Name: operation_purge; Type: INDEX; Schema: segue; Owner: -
--

CREATE INDEX operation_purge ON segue.operation USING btree (purge) WHERE (purge < '9223372036854775807'::bigint);


--
-- Name: lease refuse_older; Type: TRIGGER; Schema: segue; Owner: -
--

CREATE TRIGGER refuse_older BEFORE INSERT ON segue.lease FOR EACH ROW WHEN (((new.owner < '53656775-6500-0002-0000-000000000000'::uuid) OR (new.owner > '53656775-6500-ffff-ffff-ffffffffffff'::uuid))) EXECUTE FUNCTION segue.refuse_older();


--
-- Name: owner refuse_older; Type: TRIGGER; Schema: segue; Owner: -
--

CREATE TRIGGER refuse_older BEFORE INSERT OR UPDATE OF done ON segue.owner FOR EACH ROW WHEN (((new.id < '53656775-6500-0002-0000-000000000000'::uuid) OR (new.id > '53656775-6500-ffff-ffff-ffffffffffff'::uuid))) EXECUTE FUNCTION segue.refuse_older();


--
-- PostgreSQL database dump complete
--


