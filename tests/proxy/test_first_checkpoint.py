"""A call is sent to the upstream when its checkpoint is in the store. Whenever the proxy
is killed, the next one knows the key of the call, or that the call was not sent."""

import contextlib
import signal
import sqlite3
import unittest

import stage
import upstream
import web

CALL = {"name": "odd", "arguments": {}}
KEY = {"_meta": {"dev.segue/idempotencyKey": "0123456789abcdef"}}
CHECKPOINT = 7  # its kind in the log
# Holds the write of a checkpoint in the store, until the proxy is killed.
HOLD = f"""
CREATE TRIGGER hold BEFORE INSERT ON log WHEN NEW.kind = {CHECKPOINT} BEGIN
    SELECT (WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number)
            SELECT count(*) FROM number);
END"""


class FirstCheckpoint(stage.Stage):
    above = ("--keys",)

    def sql(self, words):
        with contextlib.closing(sqlite3.connect(self.place / "tasks.db")) as file:
            file.execute("PRAGMA busy_timeout = 60000")
            rows = file.execute(words).fetchall()
            file.commit()
        return rows

    def serve(self, *options):
        return self.listen(*self.sqlite(), *options, upstream=self.upstream(*self.above))

    def begin(self, client):
        """Starts a call. When it is in the store, the store holds its checkpoint, and the
        upstream has read what was sent to it before."""
        self.sql(HOLD)
        call = client.begin("tools/call", {**CALL, **KEY})
        while not self.sql("SELECT 1 FROM operation WHERE idempotency_key IS NOT NULL"):
            pass
        self.assertIn("result", client.call("resources/read", {"uri": "x:1"}))
        return call

    def kill(self, *options):
        """Kills a proxy before the checkpoint is stored. Returns the answer of the next
        one."""
        first = self.serve(*options)
        call = self.begin(web.Web(first.url))
        self.assertEqual(self.log.take(), [])
        first.end(signal.SIGKILL)
        call.close()
        self.sql("DROP TRIGGER hold")
        return web.Web(self.serve(*options).url).call("tools/call", {**CALL, **KEY})

    def check(self, *options):
        told = self.kill(*options)
        self.assertEqual(told.get("result"), upstream.ODD, told)
        self.assertEqual(len(self.log.take()), 1)

    def test_a_kill_before_the_key_is_stored_loses_nothing(self):
        self.check()

    def test_nor_does_it_with_an_upstream_for_each_principal(self):
        self.check("--per", "principal")

    def test_nor_does_it_for_calls_that_are_tasks_early(self):
        self.check("--task-after", "0")

    def test_a_call_that_waits_for_the_store_can_be_cancelled(self):
        proxy = self.serve()
        client = web.Web(proxy.url)
        call = self.begin(client)
        cancelled = client.post({"method": "notifications/cancelled",
                                 "params": {"requestId": client.last_id - 1}})
        cancelled.getresponse().read()
        cancelled.close()
        call.close()
        self.assertIn("result", client.call("resources/read", {"uri": "x:1"}))
        self.assertEqual(self.log.take(), [])


class Unkeyed(FirstCheckpoint):
    """The upstream does not honour keys. A call that was not sent is sent."""

    above = ()


if __name__ == "__main__":
    unittest.main()
