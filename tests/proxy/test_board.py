"""`segue-proxy board`, the task board of a store, and --board-path."""

import json
import signal
import subprocess
import unittest
import urllib.error
import urllib.request

import peers
import stage

WRONG = 2  # exit status


def fetch(url, token=None):
    asked = urllib.request.Request(url)
    if token:
        asked.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return answer.read().decode()


class Board(stage.Stage):
    def test_it_shows_a_store_until_it_is_asked_to_end(self):
        store = str(self.place / "tasks.db")
        self.listen("--store", store)
        with subprocess.Popen([peers.PROXY, "board", store, "--redact"],
                              stdout=subprocess.PIPE, text=True) as board:
            url, token = board.stdout.readline().strip().split("#token=")
            self.assertEqual(len(token), 48)
            self.assertIn("<segue-board>", fetch(url))
            for given in (None, "0" * 48):
                with self.assertRaisesRegex(urllib.error.HTTPError, "401"):
                    fetch(url + "api/tasks", given)
            self.assertTrue(json.loads(fetch(url + "api/about", token))["redacted"])
            self.assertEqual(json.loads(fetch(url + "api/tasks", token))["total"], 0)
            board.send_signal(signal.SIGTERM)
            self.assertEqual(board.wait(60), 0)

    def test_a_proxy_has_one(self):
        proxy = self.listen("--board-path", "/board", "--board-read-only")
        url = proxy.url[:proxy.url.index("/", 8)] + "/board"
        self.assertIn("<segue-board>", fetch(url))
        self.assertTrue(json.loads(fetch(url + "/api/about"))["readOnly"])


class Arguments(unittest.TestCase):
    def refused(self, status, sentence, *words):
        told = subprocess.run([peers.PROXY, *words], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(told.returncode, status)
        self.assertIn(sentence, told.stderr)

    def test_wrong_arguments_are_refused(self):
        self.refused(WRONG, "the store is missing", "board")
        self.refused(WRONG, "too many arguments", "board", "a", "b")
        self.refused(WRONG, "option is unknown", "board", "a", "--nothing")
        self.refused(WRONG, "this is no port", "board", "a", "--port", "70000")
        self.refused(1, "No such file", "board", "/nowhere/tasks.db")
        self.refused(WRONG, "--board-path needs --listen", "--board-path", "/b", "x")
        self.refused(WRONG, "--board-redact needs --board-path", "--listen",
                     "127.0.0.1:0", "--board-redact", "x")
        self.refused(WRONG, "has to begin with /", "--listen", "127.0.0.1:0",
                     "--board-path", "b", "x")
        done = subprocess.run([peers.PROXY, "board", "--help"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 0)
        self.assertIn("segue-proxy board STORE", done.stdout)
