"""`segue-proxy store`: looks into the store of a proxy, which may run or be gone."""

import base64
import contextlib
import json
import os
import pty
import socket
import sqlite3
import subprocess
import time

import peers
import stage
import web
from stage import text_of


class Store(stage.Stage):
    def setUp(self):
        super().setUp()
        self.where = self.store()

    def store(self):
        return str(self.place / "tasks.db")

    def store_of_its_own(self):
        """Returns another store of the same kind, which is empty."""
        return str(self.place / "other.db")

    def look(self, verb, *words, status=0):
        """Runs a command; returns what it prints."""
        done = subprocess.run([peers.PROXY, "store", verb, self.where, *words],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done.stdout if status in (0, 3) else done.stderr

    def objects(self, verb, *words):
        return [json.loads(line)
                for line in self.look(verb, *words, "--json").splitlines()]

    def begin(self):
        """Starts a proxy and a task that waits; returns the client and the task's id."""
        self.proxy = self.listen("--store", self.where, "--task-after", "0")
        client = web.Web(self.proxy.url)
        return client, client.tool("later", {"go": self.go.path},
                                   task={})["result"]["task"]["taskId"]

    def wait_status(self, client, task, status):
        found = None
        end = time.monotonic() + peers.PATIENCE
        while found != status:
            self.assertLess(time.monotonic(), end, f"the task stays {found}")
            found = client.call("tasks/get", {"taskId": task})["result"]["status"]

    def test_a_task_is_listed_shown_and_watched(self):
        client, task = self.begin()
        listed, = self.objects("ls")
        self.assertEqual((listed["taskId"], listed["tool"], listed["status"]),
                         (task, "later", "working"))
        self.assertNotIn("params", listed)
        self.assertIn("later", self.look("ls"))
        self.assertEqual(self.objects("ls", "--status", "completed"), [])
        self.assertEqual(self.objects("ls", "--tool", "other"), [])
        with subprocess.Popen([peers.PROXY, "store", "watch", self.where, task, "--json"],
                              stdout=subprocess.PIPE, text=True) as watch:
            first = json.loads(watch.stdout.readline())
            self.assertEqual(first["params"]["arguments"], {"go": self.go.path})
            self.go.let()
            text_of(client.call("tasks/result", {"taskId": task}))
            kinds = [json.loads(line)["kind"] for line in watch.stdout]
            self.assertEqual(kinds[-1], "result")
            self.assertIn("segment", kinds)
        self.assertEqual(watch.returncode, 0)
        summary, *entries = self.objects("show", task)
        self.assertEqual(summary["status"], "completed")
        self.assertEqual([entry["kind"] for entry in entries][-len(kinds):], kinds)
        behind = str(entries[-1]["seq"] + 9)
        self.assertEqual(len(self.objects("watch", task, "--after", behind)), 1)
        last = self.objects("show", task, "--after", str(entries[-2]["seq"]))
        self.assertEqual([part["kind"] for part in last], ["task", "result"])

    def test_a_task_is_cancelled_and_removed(self):
        client, task = self.begin()
        self.assertIn("has not ended", self.look("rm", task, status=1))
        self.look("cancel", task)
        self.wait_status(client, task, "cancelled")
        self.assertIn("has ended", self.look("cancel", task, status=1))
        self.look("rm", task)
        self.assertIn("no operation", self.look("rm", task, status=1))
        self.assertIn("no operation", self.look("show", task, status=1))
        self.assertEqual(self.objects("ls"), [])

    def test_what_a_dead_proxy_left_is_there(self):
        _, task = self.begin()
        self.proxy.process.kill()
        self.proxy.process.wait()
        self.assertEqual(self.objects("ls")[0]["taskId"], task)
        stats, = self.objects("stats")
        counts = [stats[name] for name in ("tasks", "working", "unreadable")]
        self.assertEqual(counts, [1, 1, 0])
        self.assertIn("tasks 1\n", self.look("stats"))
        self.assertEqual(self.look("verify"), "1 operations, 0 faulty\n")

    def test_a_look_takes_nothing_over(self):
        _, task = self.begin()
        self.proxy.process.kill()
        self.proxy.process.wait()
        for _ in range(3):
            self.assertEqual(self.objects("show", task)[0]["status"], "working")
        proxy = self.listen("--store", self.where, "--task-after", "0")
        while self.objects("ls")[0]["status"] == "working":
            self.assertIsNone(proxy.process.poll())


    def lines(self):
        return self.look("export").splitlines()

    def test_a_backup_is_restored(self):
        client, done = self.begin()
        self.go.let()
        text = text_of(client.call("tasks/result", {"taskId": done}))
        before = self.lines()
        backup = self.place / "backup.jsonl"
        self.look("export", str(backup))
        self.assertEqual(backup.stat().st_mode & 0o777, 0o600)
        self.assertEqual(backup.read_text().splitlines(), before)
        self.proxy.process.kill()
        self.proxy.process.wait()
        old, self.where = self.where, self.store_of_its_own()
        operations = json.loads(before[-1])["end"]["operations"]
        self.assertEqual(self.look("import", str(backup)),
                         f"{operations} operations made, 0 were there already\n")
        self.assertEqual(self.lines(), before)
        self.assertEqual(self.look("import", str(backup)),
                         f"0 operations made, {operations} were there already\n")
        proxy = self.listen("--store", self.where, "--task-after", "0")
        again = web.Web(proxy.url)
        self.assertEqual(text_of(again.call("tasks/result", {"taskId": done})), text)
        self.assertNotEqual(old, self.where)

    def test_a_store_moves_to_another_kind(self):
        client, done = self.begin()
        self.go.let()
        text_of(client.call("tasks/result", {"taskId": done}))
        self.proxy.process.kill()
        self.proxy.process.wait()
        before, file = self.lines(), str(self.place / "moved.db")
        self.look("migrate", file)
        self.where = file
        self.assertEqual(self.lines(), before)
        self.where = self.store_of_its_own()
        subprocess.run([peers.PROXY, "store", "migrate", file, self.where], timeout=60,
                       check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.lines(), before)

    def test_dropped_entries_are_not_missed(self):
        """A log whose first entries, and some others, were dropped."""
        def entry(seq):
            return {"entry": {"seq": seq, "segment": seq, "kind": 1, "atMs": 5,
                              "text": "{}"}}
        head = {"taskId": "t", "id": base64.b64encode(bytes(range(16))).decode(),
                "principal": base64.b64encode(bytes(32)).decode(), "createdMs": 5,
                "text": "{}"}
        lines = [{"archive": 1, "records": 2}, {"operation": head},
                 *(entry(seq) for seq in (3, 4, 70, 71, 200)), {"state": {"ended": 0}},
                 {"end": {"operations": 1}}]
        archive = self.place / "archive"
        archive.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n"
                                   for line in lines))
        self.where = self.store_of_its_own()
        self.look("import", str(archive))
        self.assertEqual(self.lines(), archive.read_text().splitlines())

    def test_a_task_runs_again(self):
        client, task = self.begin()
        told = self.look("rerun", task, "--after", "9", status=1)
        self.assertIn("it has made fewer segments", told)
        again, = self.objects("rerun", task)
        self.assertEqual((again["status"], again["tool"]), ("working", "later"))
        self.assertNotEqual(again["taskId"], task)
        self.assertEqual({one["taskId"] for one in self.objects("ls")},
                         {task, again["taskId"]})
        self.go.let()
        self.go.let()
        self.wait_status(client, again["taskId"], "completed")

    def test_counts_are_objects_for_programs(self):
        self.begin()
        backup = str(self.place / "backup.jsonl")
        self.assertIn("needs a FILE", self.look("export", "--json", status=2))
        told, = self.objects("export", backup)
        self.assertEqual(told["leftOut"], False)
        self.where = self.store_of_its_own()
        self.assertEqual(self.objects("import", backup),
                         [{"made": told["operations"], "present": 0, "leftOut": 0}])

    def test_a_person_sees_how_far_it_is(self):
        self.begin()
        backup = str(self.place / "backup.jsonl")
        for words in (("export", self.where, backup), ("import", self.where, backup)):
            ours, theirs = pty.openpty()
            subprocess.run([peers.PROXY, "store", *words], stdout=subprocess.DEVNULL,
                           stderr=theirs, check=True, timeout=60)
            os.close(theirs)
            self.assertRegex(os.read(ours, 65536).decode(),
                             # PostgreSQL does not know how many there are
                             r"\r(\[=+ *\] +100 %  )?\d+ operations\r\n$")
            os.close(ours)

    def test_old_tasks_are_deleted(self):
        client, old = self.begin()
        self.assertEqual(self.look("retention", "--older-than", "0s"),
                         "0 operations deleted\n")
        self.go.let()
        self.wait_status(client, old, "completed")
        self.assertEqual(self.look("retention", "--older-than", "1h", "--dry-run"), "")
        while not (would := self.look("retention", "--older-than", "0s", "--dry-run")):
            pass  # the second of its end is not over
        self.assertEqual(would, f"{old}\n")
        self.assertEqual(self.objects("ls")[0]["taskId"], old)
        for words in (("--status", "failed"), ("--tool", "other")):
            self.assertEqual(self.objects("retention", "--older-than", "0s", *words),
                             [{"deleted": 0}])
        self.assertEqual(self.objects("retention", "--older-than", "0s"),
                         [{"deleted": 1}])
        self.assertEqual(self.objects("ls"), [])


    def test_it_gives_room_back(self):
        client, task = self.begin()
        self.look("cancel", task)
        self.wait_status(client, task, "cancelled")
        self.look("rm", task)
        if self.where.startswith("redis:"):
            self.assertIn("Redis gives", self.look("compact", status=1))
        elif self.where.startswith("postgresql:"):
            self.assertIn("VACUUM FULL", self.look("compact", status=1))
        else:
            told, = self.objects("compact")
            self.assertLessEqual(told["after"], told["before"])
            self.assertGreater(told["after"], 0)


class Redis(Store):
    def store(self):
        self.redis = stage.start_redis(self)
        return f"redis://127.0.0.1:{self.redis.port}"

    def store_of_its_own(self):
        return f"redis://127.0.0.1:{self.redis.port}?prefix=other"


class Postgres(Store):
    def store(self):
        return stage.Database.url()

    def store_of_its_own(self):
        return stage.Database.url()


class Doctor(stage.Stage):
    def ask(self, *words, status):
        done = subprocess.run([peers.PROXY, "doctor", *words], capture_output=True,
                              text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done.stdout if status in (0, 3) else done.stderr

    def test_a_store_is_examined(self):
        file = str(self.place / "tasks.db")
        proxy = self.listen("--store", file, "--task-after", "0")
        client = web.Web(proxy.url)
        task = client.tool("later", {"go": self.go.path},
                           task={})["result"]["task"]["taskId"]
        self.go.let()
        text_of(client.call("tasks/result", {"taskId": task}))
        told = self.ask(file, status=0)
        self.assertIn("a store of Segue, in SQLite", told)
        self.assertIn("has: 1 tasks", told)
        self.assertIn("1 completed", told)
        self.assertIn("  ok: ", told)

    def test_what_wants_a_look_is_named(self):
        """The archive has a task of 1970 that has no end, and a log behind its end."""
        def task(name, byte, entries):
            head = {"taskId": name, "id": base64.b64encode(bytes([byte] * 16)).decode(),
                    "principal": base64.b64encode(bytes(32)).decode(), "createdMs": 1,
                    "text": '{"tool":"build","task":1}'}
            return [{"operation": head},
                    *({"entry": {"seq": at + 1, "kind": kind, "atMs": 2, "text": "{}"}}
                      for at, kind in enumerate(entries)),
                    {"state": {"ended": 0}}]
        result, status = 8, 4
        lines = [{"archive": 1, "records": 2}, *task("quiet", 1, []),
                 *task("strange", 2, [result, status]), {"end": {"operations": 2}}]
        archive, file = self.place / "archive", str(self.place / "tasks.db")
        archive.write_text("".join(json.dumps(line) + "\n" for line in lines))
        subprocess.run([peers.PROXY, "store", "import", file, str(archive)], check=True,
                       timeout=60, stdout=subprocess.DEVNULL)
        told = self.ask(file, status=3)
        self.assertIn("strange: the log is not what a server writes", told)
        self.assertIn("wrong: 1 logs", told)
        self.assertIn("1 tasks work and have said nothing for a day", told)
        self.assertIn("| quiet build, nothing since 1970-01-01", told)

    def test_a_server_is_examined(self):
        proxy = self.listen()
        told = self.ask(proxy.url, status=0)
        self.assertIn("ok, ", told)
        self.assertIn("tool later", told)
        self.assertIn("to correct this", self.ask("--start-timeout", "1s", "--", "false",
                                                  status=3))

    def test_a_server_that_is_not_there_is_not_awaited_long(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
            began = time.monotonic()
            self.assertIn("failed", self.ask(url, status=3))
            self.assertLess(time.monotonic() - began, 30)
            self.assertIn("in time", self.ask("--timeout", "200ms", url, status=3))
            began = time.monotonic()
            self.assertIn("in time", self.ask("--timeout=200ms", url, status=3))
            self.assertLess(time.monotonic() - began, 4)
            self.assertIn("in time", self.ask("--timeout", "200ms", "--", "sleep", "600",
                                              status=3))

    def test_wrong_arguments_are_named(self):
        file = str(self.place / "none.db")
        self.assertIn("No such file", self.ask(file, status=1))
        for words in ((), (file, "more")):
            self.assertIn("usage: segue-proxy doctor", self.ask(*words, status=2))
        self.assertIn("usage: segue-proxy doctor", self.ask("--help", status=0))


class Arguments(stage.Stage):
    def refuse(self, *words, status=2):
        done = subprocess.run([peers.PROXY, "store", *words], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_wrong_arguments_are_named(self):
        file = str(self.place / "none.db")
        for words in ((), ("other",), ("ls",), ("ls", file, "more"), ("show", file),
                      ("ls", file, "--status", "done"), ("ls", file, "--limit", "-1"),
                      ("ls", file, "--limit"), ("ls", file, "--colour", "no"),
                      ("answer", file, "task", "key"), ("migrate", file),
                      ("export", file, "a", "b"), ("retention", file),
                      ("retention", file, "--older-than", "7"),
                      ("retention", file, "--older-than", "7w"),
                      ("retention", file, "--older-than", "999999999999d"),
                      ("show", file, "a", "b", "c", "d")):
            self.assertIn("usage:", self.refuse(*words), words)

    def test_a_file_that_is_not_there_is_not_made(self):
        file = self.place / "none.db"
        self.assertIn("No such file", self.refuse("ls", str(file), status=1))
        self.assertFalse(file.exists())
        file.write_text("no store")
        self.assertIn(str(file), self.refuse("ls", str(file), status=1))

    def test_an_archive_that_is_none_is_refused(self):
        file, archive = str(self.place / "new.db"), self.place / "archive"
        archive.write_text('{"archive":1,"records":2}\n{"entry":{}}\n')
        done = subprocess.run([peers.PROXY, "store", "import", file, str(archive)],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("line 2 of the archive", done.stderr)
        archive.write_text('{"archive":1,"records":2}\n')
        done = subprocess.run([peers.PROXY, "store", "import", file, str(archive)],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not whole", done.stderr)
        self.assertIn("No such file",
                      self.refuse("export", str(self.place / "none.db"), status=1))

    def test_a_terminal_gets_no_control_characters(self):
        head = {"taskId": "a\u001b[31mb\u009bc",
                "id": base64.b64encode(bytes(16)).decode(),
                "principal": base64.b64encode(bytes(32)).decode(), "createdMs": 1,
                "text": "{}"}
        lines = [{"archive": 1, "records": 2}, {"operation": head},
                 {"entry": {"seq": 2000000, "kind": 1, "atMs": 1, "text": "{}"}},
                 {"state": {"ended": 0}}, {"end": {"operations": 1}}]
        file, archive = str(self.place / "new.db"), self.place / "archive"
        archive.write_text("".join(json.dumps(line) + "\n" for line in lines))
        done = subprocess.run([peers.PROXY, "store", "import", file, str(archive)],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("a\\x1b[31mb\\x9bc: it has more entries", done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def run_faulty(self, verb, file, *words):
        done = subprocess.run([peers.PROXY, "store", verb, file, *words],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("cannot be read are left out", done.stderr)
        return done.stdout

    def test_what_cannot_be_read_ends_alike(self):
        """A log that SQLite cannot read is left out of an archive, and of a copy."""
        file, to = str(self.place / "torn.db"), str(self.place / "to.db")
        proxy = self.listen("--store", file, "--task-after", "0")
        client = web.Web(proxy.url)
        tasks = [client.tool("later", {"go": self.go.path},
                             task={})["result"]["task"]["taskId"] for _ in range(2)]
        proxy.process.kill()
        proxy.process.wait()
        with contextlib.closing(sqlite3.connect(file)) as base, base:
            base.execute("UPDATE operation SET principal = x'00' WHERE task_id = ?",
                         tasks[:1])
        for words in (("export", file, str(self.place / "archive")),
                      ("migrate", file, to)):
            done = subprocess.run([peers.PROXY, "store", *words], capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("cannot be read are left out", done.stderr)
        self.assertEqual(self.run_faulty("ls", file).splitlines()[0].split()[0], tasks[1])
        self.assertIn("working 1\n", self.run_faulty("stats", file))
        self.assertEqual(self.run_faulty("verify", file),
                         "1 operations, 0 faulty, and others that cannot be read\n")
        self.assertEqual(self.run_faulty("retention", file, "--older-than", "0s"),
                         "0 operations deleted\n")
        done = subprocess.run([peers.PROXY, "doctor", file], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("records that cannot be read", done.stdout)
        self.assertNotIn("logs are not", done.stdout)
        archive = (self.place / "archive").read_text()
        self.assertNotIn(tasks[0], archive)
        self.assertIn(tasks[1], archive)

    def test_help_shows_the_commands(self):
        done = subprocess.run([peers.PROXY, "store", "--help"], capture_output=True,
                              text=True, timeout=60, check=True)
        self.assertIn("segue-proxy store ls STORE", done.stdout)
