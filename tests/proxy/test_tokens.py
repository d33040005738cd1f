"""Access tokens in a file (--tokens): who may call, and as whom."""

import hashlib
import os
import signal
import unittest
import urllib.parse

import peers
import stage
import test_stdio
import web
from stage import text_of


def entry(principal, token):
    return f"{principal} {hashlib.sha256(token.encode()).hexdigest()}\n"


class Tokens(stage.Stage):
    def setUp(self):
        super().setUp()
        self.tokens = self.place / "tokens"

    def write(self, **tokens):
        self.tokens.write_text("# who may call\n\n" + "".join(
            entry(*pair) for pair in tokens.items()))

    def serve(self, *options, **tokens):
        self.write(**tokens)
        return self.listen("--tokens", str(self.tokens), "--log-level", "info", *options)

    def status(self, proxy, authorization=None):
        """Returns the status of a request with this header. A refusal has a challenge."""
        where = urllib.parse.urlsplit(proxy.url)
        connection = web.connect(where)
        headers = {"Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if authorization:
            headers["Authorization"] = authorization
        connection.request("POST", where.path, '{"jsonrpc":"2.0","id":1,"method":"ping"}',
                           headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        challenge = response.headers.get("WWW-Authenticate", "")
        self.assertEqual(challenge.startswith("Bearer"), response.status == 401)
        return response.status

    def test_a_caller_without_a_valid_token_is_refused(self):
        proxy = self.serve(ada="secret")
        for wrong in (None, "Bearer wrong", "Bearer ", "Bearer", "Basic secret", "secret",
                      "Bearer secret2", "Bearer secre"):
            self.assertEqual(self.status(proxy, wrong), 401, wrong)
        for right in ("Bearer secret", "bearer secret"):
            self.assertNotEqual(self.status(proxy, right), 401)
        self.assertEqual(web.get(proxy.url, "/health")[0], 200)

    def test_tokens_of_each_length_are_known(self):
        lengths = (1, 2, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000)
        tokens = {f"p{length}": "x" * length for length in lengths}
        proxy = self.serve(**tokens)
        for token in tokens.values():
            self.assertNotEqual(self.status(proxy, f"Bearer {token}"), 401)
        self.assertEqual(self.status(proxy, f"Bearer {'x' * 58}"), 401)

    def test_a_task_belongs_to_its_principal(self):
        proxy = self.serve("--task-after", "0", ada="secret", bob="other")
        ada, bob = (web.Web(proxy.url, token=token) for token in ("secret", "other"))
        task = ada.tool("later", {"go": self.go.path}, task={})["result"]["task"]
        asked = {"taskId": task["taskId"]}
        self.assertEqual(bob.call("tasks/get", asked)["error"]["code"], -32602)
        self.go.let()
        self.assertEqual(text_of(ada.call("tasks/result", asked)), "later")

    def test_a_handle_belongs_to_its_principal(self):
        proxy = self.serve("--handle", "--task-after", "50ms", ada="secret", bob="other")
        ada, bob = (web.Web(proxy.url, version="2025-06-18", token=token)
                    for token in ("secret", "other"))
        words = text_of(ada.tool("later", {"go": self.go.path}))
        handle = {"handle": words.split("handle is ")[1].split(".")[0]}
        self.assertEqual(bob.tool("segue_proxy_result", handle)["error"]["code"], -32602)
        self.go.let()
        told = "still runs"
        while "still runs" in told:
            told = text_of(ada.tool("segue_proxy_result", handle))
        self.assertEqual(told, "later")

    def test_each_principal_may_have_an_upstream(self):
        proxy = self.serve("--per", "principal", ada="secret", bob="other")
        pids = [text_of(web.Web(proxy.url, token=token).tool("pid"))
                for token in ("secret", "other", "secret")]
        self.assertEqual(pids[0], pids[2])
        self.assertNotEqual(pids[0], pids[1])

    def test_the_file_is_read_anew(self):
        proxy = self.serve(ada="secret")
        client = web.Web(proxy.url, token="secret")
        self.write(bob="other")
        proxy.process.send_signal(signal.SIGHUP)
        proxy.wait_line("was read anew")
        self.assertEqual(self.status(proxy, "Bearer secret"), 401)
        self.assertNotEqual(self.status(proxy, "Bearer other"), 401)
        refused = client.begin("ping")
        self.assertEqual(refused.getresponse().status, 401)
        refused.close()

    def test_a_file_that_cannot_be_used_changes_nothing(self):
        proxy = self.serve(ada="secret")
        for words in ("ada\n", None):
            self.tokens.write_text(words) if words else self.tokens.unlink()
            proxy.process.send_signal(signal.SIGHUP)
            proxy.wait_line("the proxy goes on as before")
            self.assertNotEqual(self.status(proxy, "Bearer secret"), 401)
            self.assertEqual(self.status(proxy), 401)

    def test_the_last_token_can_be_withdrawn(self):
        proxy = self.serve(ada="secret")
        for words in ("# nobody\n", ""):
            self.tokens.write_text(words)
            proxy.process.send_signal(signal.SIGHUP)
            proxy.wait_line("nobody is let in")
            proxy.wait_line("was read anew")
            self.assertEqual(self.status(proxy, "Bearer secret"), 401)
            self.assertEqual(self.status(proxy), 401)
        self.write(ada="secret")
        proxy.process.send_signal(signal.SIGHUP)
        proxy.wait_line("was read anew")
        self.assertNotEqual(self.status(proxy, "Bearer secret"), 401)

    def refused(self, path):
        """Returns what a proxy says that cannot use this file."""
        told = test_stdio.run("--listen", "127.0.0.1:0", "--tokens", str(path), "--",
                              *peers.UPSTREAM)
        self.assertEqual(told.returncode, 2)
        self.assertIn(str(path), told.stderr)
        return told.stderr

    def test_what_is_no_regular_file_is_refused(self):
        pipe = self.place / "pipe"
        os.mkfifo(pipe)
        for path in (pipe, "/dev/zero", self.place):
            self.assertIn("is not a regular file", self.refused(path))

    def test_a_file_that_is_too_large_is_refused(self):
        comment = "#" * (4 * 1024 * 1024 - 1) + "\n"
        self.tokens.write_text(entry("ada", "secret") + comment)
        self.assertIn("is larger than 4194304 bytes", self.refused(self.tokens))

    def test_a_file_that_cannot_be_read_to_its_end_is_refused(self):
        self.assertIn("Input/output error", self.refused("/proc/self/mem"))

    def test_a_file_with_binary_bytes_is_refused(self):
        self.tokens.write_text(entry("ada", "secret") + "\0" + entry("bob", "other"))
        self.assertIn("is not a text", self.refused(self.tokens))

    def test_a_file_that_cannot_be_used_ends_the_proxy_at_the_start(self):
        digest = hashlib.sha256(b"x").hexdigest()
        for words in ("", "# nobody\n", "ada\n", f"{digest}\n", f"ada {digest}0\n",
                      f"ada {digest[1:]}\n", f"ada g{digest[1:]}\n",
                      f"ada {digest} more\n", f"ada {digest}\nbob\n"):
            self.tokens.write_text(words)
            told = test_stdio.run("--listen", "127.0.0.1:0", "--tokens",
                                  str(self.tokens), "--", *peers.UPSTREAM)
            self.assertEqual(told.returncode, 2, words)
            self.assertIn(str(self.tokens), told.stderr)

    def test_tokens_need_a_listener_and_exclude_an_issuer(self):
        self.write(ada="secret")
        issuer = ("--listen", "127.0.0.1:0", "--issuer", "https://a.example")
        for options in ((), issuer):
            told = test_stdio.run("--tokens", str(self.tokens), *options, "--",
                                  *peers.UPSTREAM)
            self.assertEqual(told.returncode, 2)
            self.assertIn("--tokens", told.stderr)


if __name__ == "__main__":
    unittest.main()
