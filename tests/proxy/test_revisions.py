"""What belongs to one revision, between clients and servers of different ones."""

import json
import sys
import unittest

import peers
import web

MODERN = [sys.executable, "-B", str(peers.HERE / "modern_server.py")]
TASKS = [sys.executable, "-B", str(peers.HERE / "tasks_server.py")]
KNOWS_TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
CACHE = {"ttlMs", "cacheScope"}


def text_of(answer):
    return answer["result"]["content"][0]["text"]


class Modern(unittest.TestCase):
    """The server speaks 2026-07-28."""

    @classmethod
    def setUpClass(cls):
        cls.proxy = web.Listening("--task-after", "1h", upstream=MODERN)

    @classmethod
    def tearDownClass(cls):
        cls.proxy.__exit__()

    def modern(self, **capabilities):
        return web.Modern(self.proxy.url, capabilities)

    def test_a_server_sees_what_the_client_of_each_call_declares(self):
        for capabilities in ({"sampling": {}}, {"elicitation": {"url": {}}}, {}):
            for client in (self.modern(**capabilities),
                           web.Web(self.proxy.url, capabilities=capabilities)):
                declared = json.loads(text_of(client.tool("declared")))
                self.assertEqual({name: declared[name] for name in declared if name in (
                    "sampling", "elicitation", "roots")}, capabilities)

    def test_a_question_keeps_its_key(self):
        client = self.modern(elicitation={})
        asked = client.tool("ask")["result"]
        self.assertEqual(list(asked["inputRequests"]), ["user_name"])
        answer = {"user_name": {"action": "accept", "content": {"name": "n"}}}
        told = client.tool("ask", inputResponses={**answer, "other": {"x": 1}},
                           requestState=asked["requestState"])
        self.assertEqual(json.loads(text_of(told)), answer)

    def test_a_task_of_the_server_is_a_task_at_once(self):
        made = self.modern(**KNOWS_TASKS).tool("job")["result"]
        self.assertEqual(made["resultType"], "task")
        old = web.Web(self.proxy.url)
        task = old.tool("job", task={})["result"]["task"]["taskId"]
        self.assertEqual(text_of(old.call("tasks/result", {"taskId": task})), "done")

    def test_a_client_without_tasks_gets_the_result_of_a_task(self):
        for client in (self.modern(), web.Web(self.proxy.url)):
            self.assertEqual(text_of(client.tool("job")), "done")

    def test_a_result_that_differs_from_its_segments_replaces_them(self):
        for client, meta in ((self.modern(partialResults={}), {"partialResultToken": 1}),
                             (self.modern(), {}), (web.Web(self.proxy.url), {})):
            told = client.tool("contrary", _meta=meta)["result"]["content"]
            self.assertEqual(told, [{"type": "text", "text": "right"}])

    def test_an_old_client_gets_no_members_of_2026_07_28(self):
        for version in ("2025-11-25", "2025-06-18", "2024-11-05"):
            client = web.Web(self.proxy.url, version=version)
            for method, params in (("resources/read", {"uri": "x:1"}),
                                   ("resources/list", {}), ("tools/list", {}),
                                   ("prompts/get", {"name": "p"}),
                                   ("tools/call", {"name": "declared"})):
                result = client.call(method, params)["result"]
                self.assertFalse(result.keys() & {*CACHE, "resultType", "_meta"}, result)

    def test_a_client_of_2026_07_28_gets_how_long_a_resource_stays_fresh(self):
        read = self.modern().call("resources/read", {"uri": "x:1"})["result"]
        self.assertEqual([read["ttlMs"], read["cacheScope"]], [5000, "private"])


class Tasks(unittest.TestCase):
    """The server speaks 2025-11-25, and runs its tools as tasks only."""

    def test_the_id_of_its_task_reaches_no_client(self):
        with web.Listening(upstream=TASKS) as proxy:
            for client in (web.Modern(proxy.url, {"elicitation": {}}),
                           web.Web(proxy.url), web.Web(proxy.url, version="2025-06-18")):
                result = client.tool("job")["result"]
                self.assertEqual(result["_meta"].pop("example.com/k"), 1)
                self.assertNotIn("upstream-1", json.dumps(result))
            asked = json.dumps(web.Modern(proxy.url, {"elicitation": {}}).tool("asking"))
            self.assertIn("example.com/z", asked)
            self.assertNotIn("upstream-1", asked)

    def test_the_id_of_its_task_is_not_in_a_question_by_request(self):
        asked = []
        with peers.proxy(upstream=TASKS, capabilities={"elicitation": {}}) as client:
            client.answers["elicitation/create"] = lambda params: (
                asked.append(params), {"result": {"action": "decline"}})[1]
            self.assertEqual(text_of(client.tool("asking")), "answered")
        self.assertEqual(asked[0]["_meta"], {"example.com/z": 1})

    def test_a_task_of_the_client_is_named_in_its_result(self):
        with web.Listening(upstream=TASKS) as proxy:
            client = web.Web(proxy.url)
            task = client.tool("job", task={})["result"]["task"]["taskId"]
            meta = client.call("tasks/result", {"taskId": task})["result"]["_meta"]
            self.assertEqual(meta["io.modelcontextprotocol/related-task"],
                             {"taskId": task})


if __name__ == "__main__":
    unittest.main()
