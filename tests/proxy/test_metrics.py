"""The metrics of a proxy (--metrics-path): one text for all paths, and who gets it."""

import hashlib
import subprocess
import unittest
import urllib.parse

import peers
import stage
import upstream
import web

LISTEN = ("--listen", "127.0.0.1:0")
WRONG = 2  # exit status


def ask(proxy, **headers):
    """Returns the status and the text of a request for the metrics."""
    connection = web.connect(urllib.parse.urlsplit(proxy.url))
    connection.request("GET", "/metrics", headers=headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


class Metrics(stage.Stage):
    def serve(self, *options, **servers):
        self.write_config(**servers)
        return self.listen("--config", str(self.file), "--metrics-path", "/metrics",
                           *options, upstream=[])

    def test_each_path_has_its_rows(self):
        proxy = self.serve(a=self.server(path="/a"), b=self.server(path="/b"))
        client = web.Web(proxy.url[:proxy.url.index("/", 8)] + "/b")
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        status, text = ask(proxy)
        self.assertEqual(status, 200)
        self.assertIn('\nsegue_calls_total{endpoint="/b",mcp_method_name="tools/call",'
                      'gen_ai_tool_name="odd",era="legacy"} 1\n', text)
        self.assertIn('\nsegue_operations_calls_total{endpoint="/a"} 0\n', text)
        self.assertIn('\nsegue_operations_calls_total{endpoint="/b"} 1\n', text)
        self.assertEqual(text.count("# TYPE segue_operations_calls_total counter\n"), 1)

    def test_there_are_none_by_default(self):
        self.assertEqual(ask(self.listen())[0], 404)

    def test_who_came_through_a_proxy_is_refused(self):
        proxy = self.serve(a=self.server())
        self.assertEqual(ask(proxy, **{"X-Forwarded-For": "192.0.2.1"})[0], 403)

    def test_a_token_is_needed_where_calls_need_one(self):
        file = self.place / "tokens"
        file.write_text(f"ada {hashlib.sha256(b'secret').hexdigest()}\n")
        proxy = self.serve("--tokens", str(file), a=self.server())
        self.assertEqual(ask(proxy)[0], 401)
        self.assertEqual(ask(proxy, Authorization="Bearer secret")[0], 200)

    def refused(self, sentence, *options):
        told = subprocess.run(
            [peers.PROXY, *options, "--config", str(self.file)], text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=peers.PATIENCE)
        self.assertEqual(told.returncode, WRONG, told.stderr)
        self.assertIn(sentence, told.stderr)

    def test_the_path_is_one_that_nobody_else_has(self):
        self.write_config(a=self.server(path="/a"))
        self.refused("--metrics-path needs --listen", "--metrics-path", "/m")
        self.refused("has to begin with /", *LISTEN, "--metrics-path", "m")
        for path in ("/health", "/.well-known/x"):
            self.refused("is a path that the proxy needs itself", *LISTEN,
                         "--metrics-path", path)
        self.refused("is a path that the proxy needs itself", *LISTEN,
                     "--metrics-path", "/a")
        self.refused("is a path that the proxy needs itself", *LISTEN, "--path", "/m",
                     "--metrics-path", "/m")


if __name__ == "__main__":
    unittest.main()
