"""The recipe for Prometheus and Grafana: promtool accepts the metrics, the configuration
and the alerts, a Prometheus scrapes a proxy, and the queries of the alerts and of the
dashboard find what the proxy exports."""

import json
import re
import shutil
import subprocess
import time
import unittest
import urllib.parse

import peers
import recipe
import upstream
import web

ALERTS = recipe.PAGES / "segue-alerts.yml"
DASHBOARD = recipe.PAGES / "grafana-dashboard.json"
NAME = re.compile(r"\b((?:segue|mcp|process)_\w+)\b")
EMPTY_AT_FIRST = ("error_type", "segue_limits_reached_total")  # no rows before a failure


def queries():
    """Returns the queries of the dashboard as Grafana sends them."""
    board = json.loads(DASHBOARD.read_text())
    return [target["expr"].replace("$__rate_interval", "1m").replace("$job", ".*")
            .replace("$instance", ".*")
            for panel in board["panels"] for target in panel.get("targets", [])]


class Prometheus(recipe.Recipe):
    def tool(self, name):
        found = shutil.which(name)
        if not found:
            self.fail(f"{name} is missing. It is in the package prometheus")
        return found

    def promtool(self, *arguments, text=None):
        told = subprocess.run([self.tool("promtool"), *arguments], input=text, text=True,
                              capture_output=True, timeout=peers.PATIENCE)
        self.assertEqual((told.returncode, told.stderr), (0, ""), told.stdout)
        return told.stdout

    def serve(self):
        (command,) = recipe.blocks("prometheus.md", "sh")
        port = self.free_port()
        return port, self.listen(self.change(command, **{
            ":8000": f":{port}", "tasks.db": str(self.place / "tasks.db"),
            "mcp.json": str(self.path)}))

    def use(self, url):
        client = web.Web(url)
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertTrue(client.tool("wrong")["result"]["isError"])
        client.tool("nobody")

    def scrape(self, proxy):
        return web.get(proxy.url, "/metrics")[1].decode()

    def exported(self, text):
        """Returns the names of all samples that the text may have."""
        names = set()
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
            names.add(name)
            if kind == "histogram":
                names.update(f"{name}_{end}" for end in ("bucket", "sum", "count"))
        return names

    def test_promtool_accepts_what_is_exported(self):
        _, proxy = self.serve()
        self.promtool("check", "metrics", text=self.scrape(proxy))
        self.use(proxy.url)
        self.promtool("check", "metrics", text=self.scrape(proxy))

    def test_all_names_in_alerts_and_dashboard_are_exported(self):
        _, proxy = self.serve()
        names = self.exported(self.scrape(proxy))
        used = set(NAME.findall(re.sub(r"by \(.*?\)", "", ALERTS.read_text())))
        for query in queries():
            used.update(NAME.findall(re.sub(r"by \(.*?\)", "", query)))
        self.assertGreater(len(used), 20)
        self.assertEqual(used - names - {"mcp_resource_template"}, set())

    def test_the_dashboard_is_whole(self):
        board = json.loads(DASHBOARD.read_text())
        ids = [panel["id"] for panel in board["panels"]]
        self.assertEqual(len(ids), len({*ids}))
        for panel in board["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            if panel["type"] != "row":
                self.assertTrue(panel["description"] and panel["targets"], panel["title"])
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                self.assertIn("label_values(segue_build_info", variable["definition"])

    def test_a_prometheus_scrapes_a_proxy_and_answers_each_query(self):
        port, proxy = self.serve()
        self.use(proxy.url)
        (page,) = recipe.blocks("prometheus.md", "yaml")
        shutil.copy(ALERTS, self.place)
        file = self.place / "prometheus.yml"
        file.write_text("global: {scrape_interval: 100ms, scrape_timeout: 100ms}\n"
                        + self.change(page, **{":8000": f":{port}"}))
        self.promtool("check", "config", str(file))
        self.promtool("check", "rules", str(ALERTS))
        url = self.prometheus(file)
        self.wait_scrapes(url)
        self.use(proxy.url)
        for query in queries():
            with self.subTest(query):
                self.assertTrue(any(part in query for part in EMPTY_AT_FIRST)
                                or self.ask(url, query))
        rules = json.loads(self.get(url, "/api/v1/rules"))["data"]["groups"][0]["rules"]
        self.assertEqual(len(rules), ALERTS.read_text().count("- alert:"))
        for rule in rules:
            self.ask(url, rule["query"])

    def prometheus(self, file):
        port = self.free_port()
        process = subprocess.Popen(
            [self.tool("prometheus"), f"--config.file={file}",
             f"--storage.tsdb.path={self.place / 'tsdb'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        for line in process.stderr:
            if "Server is ready to receive web requests" in line:
                return f"http://127.0.0.1:{port}/"
        raise EOFError("Prometheus did not start")

    def get(self, url, path):
        status, body = web.get(url, path)
        self.assertEqual(status, 200, body)
        return body

    def ask(self, url, query):
        """Returns the rows of a query."""
        answer = json.loads(self.get(
            url, "/api/v1/query?" + urllib.parse.urlencode({"query": query})))
        self.assertEqual(answer["status"], "success")
        return answer["data"]["result"]

    def wait_scrapes(self, url):
        """Waits until there are two scrapes, as a rate needs them."""
        end = time.monotonic() + peers.PATIENCE
        while True:
            rows = self.ask(url, 'count_over_time(up{job="mcp"}[1m])')
            if rows and float(rows[0]["value"][1]) >= 2:
                return
            self.assertLess(time.monotonic(), end, "nothing is scraped")


if __name__ == "__main__":
    unittest.main()
