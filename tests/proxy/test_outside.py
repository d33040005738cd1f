"""What passes outside of calls: subscriptions, log messages and their level, questions;
one upstream for each session; upstreams that can be used only later."""

import unittest

import peers
import stage
import web
from stage import text_of

UPDATED = "notifications/resources/updated"
MESSAGE = "notifications/message"


class Outside(stage.Stage):
    log_options = ("--all",)

    def open(self, client, answers=None):
        client.stream = client.open_stream(answers)
        self.addCleanup(client.stream.close)

    def logged(self, *names):
        """Returns the lines of the upstream's log that have one of these names."""
        return [line for line in self.log.take() if line[0] in names]

    def wait_logged(self, name, number=1):
        while len(self.logged(name)) < number:
            self.log.wait(len(self.log.lines) + 1)  # one more than were looked at
        return self.logged(name)[number - 1]


class Subscriptions(Outside):
    def test_a_subscription_passes_and_its_updates_come_back(self):
        with self.stdio() as client:
            self.assertEqual(client.call("resources/subscribe", {"uri": "x:1"})["result"],
                             {})
            self.assertEqual(client.wait_note(UPDATED)["params"], {"uri": "x:1"})
            client.tool("touch", {"uri": "x:2"})
            client.tool("touch", {"uri": "x:1"})
            self.assertEqual(client.wait_note(UPDATED)["params"], {"uri": "x:1"})
            client.call("resources/unsubscribe", {"uri": "x:1"})
            self.wait_logged("resources/unsubscribe")
            client.tool("touch", {"uri": "x:1"})
            client.tool("pid")
            self.assertFalse([n for n in client.notes if n["method"] == UPDATED])
            self.assertEqual(self.logged("resources/subscribe", "resources/unsubscribe"),
                             [["resources/subscribe", "x:1"],
                              ["resources/unsubscribe", "x:1"]])

    def test_a_part_of_a_resource_is_reported_as_the_resource(self):
        with self.stdio() as client:
            client.call("resources/subscribe", {"uri": "x:dir"})
            client.wait_note(UPDATED)
            client.tool("touch", {"uri": "x:dirt"})
            client.tool("touch", {"uri": "x:dir/file"})
            self.assertEqual(client.wait_note(UPDATED)["params"], {"uri": "x:dir"})

    def test_an_upstream_that_was_restarted_is_asked_again(self):
        with self.stdio() as client:
            client.call("resources/subscribe", {"uri": "x:1"})
            client.wait_note(UPDATED)
            client.tool("die")
            client.wait_note(UPDATED)  # the upstream reports one when it is asked
            self.wait_logged("resources/subscribe", 2)

    def test_the_upstream_is_asked_once_for_all_clients(self):
        with self.listen() as proxy:
            one, two = web.Web(proxy.url), web.Web(proxy.url)
            for client in (one, two):
                self.open(client)
                client.call("resources/subscribe", {"uri": "x:1"})
            self.assertEqual(one.stream.wait(UPDATED)["params"], {"uri": "x:1"})
            two.call("resources/subscribe", {"uri": "x:2"})
            while two.stream.wait(UPDATED)["params"] != {"uri": "x:2"}:
                pass
            one.tool("touch", {"uri": "x:1"})
            for client in (one, two):
                self.assertEqual(client.stream.wait(UPDATED)["params"], {"uri": "x:1"})
            one.call("resources/unsubscribe", {"uri": "x:1"})
            two.call("resources/unsubscribe", {"uri": "x:1"})
            self.wait_logged("resources/unsubscribe")
            lines = self.logged("resources/subscribe", "resources/unsubscribe")
            self.assertEqual([line for line in lines if line[1] == "x:1"],
                             [["resources/subscribe", "x:1"],
                              ["resources/unsubscribe", "x:1"]])

    def test_the_end_of_a_client_ends_its_subscriptions(self):
        with self.listen() as proxy:
            client = web.Web(proxy.url)
            client.call("resources/subscribe", {"uri": "x:1"})
            self.wait_logged("resources/subscribe")
            client.delete()
            self.assertEqual(self.wait_logged("resources/unsubscribe"),
                             ["resources/unsubscribe", "x:1"])

    def test_a_client_of_2026_07_28_listens_through_an_old_upstream(self):
        with self.listen() as proxy:
            client = web.Modern(proxy.url)
            stream = web.Stream(client.begin("subscriptions/listen", {"notifications": {
                "toolsListChanged": True, "resourceSubscriptions": ["x:1"]}}))
            self.assertEqual(stream.wait(UPDATED)["params"]["uri"], "x:1")
            client.tool("grow")
            stream.wait("notifications/tools/list_changed")
            stream.close()
            self.wait_logged("resources/unsubscribe")

    def test_a_new_upstream_is_listened_to(self):
        """The upstream of the far proxy is a server of 2026-07-28."""
        with self.listen() as near, self.listen(near.url, upstream=[]) as far:
            client = web.Web(far.url)
            self.open(client)
            client.call("resources/subscribe", {"uri": "x:1"})
            self.assertEqual(client.stream.wait(UPDATED)["params"], {"uri": "x:1"})
            client.tool("grow")
            client.stream.wait("notifications/tools/list_changed")
            tools = client.call("tools/list")["result"]["tools"]
            self.assertIn("grown", [tool["name"] for tool in tools])


class Logs(Outside):
    def test_the_level_passes_and_is_sent_again_after_a_restart(self):
        with self.stdio() as client:
            client.call("logging/setLevel", {"level": "error"})
            self.assertEqual(self.wait_logged("logging/setLevel"),
                             ["logging/setLevel", "error"])
            client.tool("die")
            self.assertEqual(self.wait_logged("logging/setLevel", 2),
                             ["logging/setLevel", "error"])

    def test_a_level_that_no_client_has_set_is_not_sent(self):
        with self.stdio() as client:
            client.tool("pid")
            self.assertEqual(self.logged("logging/setLevel"), [])

    def test_a_message_outside_of_calls_goes_to_those_who_want_its_level(self):
        with self.listen() as proxy:
            one, two = web.Web(proxy.url), web.Web(proxy.url)
            for client, level in ((one, "error"), (two, "info")):
                self.open(client)
                client.call("logging/setLevel", {"level": level})
            self.wait_logged("logging/setLevel", 2)
            for level in ("info", "error"):
                one.tool("say", {"level": level, "logger": "l", "data": level})
            self.assertEqual(two.stream.wait(MESSAGE)["params"]["data"], "info")
            self.assertEqual(two.stream.wait(MESSAGE)["params"], {
                "level": "error", "logger": "l", "data": "error"})
            self.assertEqual(one.stream.wait(MESSAGE)["params"]["data"], "error")


class Questions(Outside):
    ROOTS = {"roots": [{"uri": "file:///r", "name": "r"}]}

    def test_a_question_outside_of_calls_goes_to_the_one_client(self):
        with self.stdio(capabilities={"roots": {"listChanged": True}}) as client:
            client.tool("ask_later", {"method": "roots/list"})
            answer = self.answer(client, "roots/list", {"result": self.ROOTS})
            self.assertEqual(answer["result"], self.ROOTS)
            client.send({"method": "notifications/roots/list_changed"})
            self.wait_logged("roots changed")

    def answer(self, client, method, answer):
        """Answers the question that the client gets next. Returns what the upstream
        gets."""
        message = client.lines.get(timeout=peers.PATIENCE)
        self.assertEqual(message["method"], method)
        client.send({"id": message["id"], **answer})
        return self.wait_logged("answer")[1]

    def test_an_error_of_the_client_passes(self):
        with self.stdio(capabilities={"sampling": {}}) as client:
            client.tool("ask_later", {"method": "sampling/createMessage", "params": {
                "messages": [], "maxTokens": 1}})
            answer = self.answer(client, "sampling/createMessage", {
                "error": {"code": -1, "message": "no"}})
            self.assertEqual(answer["error"], {"code": -1, "message": "no"})

    def test_an_answer_that_does_not_fit_ends_the_question(self):
        form = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
        with self.stdio(capabilities={"elicitation": {}}) as client:
            client.answers["elicitation/create"] = lambda _: {
                "result": {"action": "perhaps"}}
            client.tool("ask_later", {"method": "elicitation/create", "params": form})
            while not self.logged("answer"):
                client.call("ping")  # the client is asked again, a few times
            self.assertIn("error", self.logged("answer")[0][1])

    def test_without_one_client_to_answer_roots_are_empty(self):
        with self.listen() as proxy:
            clients = [web.Web(proxy.url, capabilities={"roots": {}}) for _ in range(2)]
            clients[0].tool("ask_later", {"method": "roots/list"})
            self.assertEqual(self.wait_logged("answer")[1]["result"], {"roots": []})
            clients[0].tool("ask_later", {"method": "sampling/createMessage"})
            self.assertEqual(self.wait_logged("answer", 2)[1]["error"]["code"], -32601)


class PerSession(Outside):
    def test_each_session_has_its_own_upstream_and_its_questions_and_messages(self):
        with self.listen("--per", "session") as proxy:
            one, two = (web.Web(proxy.url, capabilities={"roots": {}}) for _ in range(2))
            for client in (one, two):
                self.open(client, {
                    "roots/list": {"roots": [{"uri": f"file:///{id(client)}"}]}})
            self.assertNotEqual(text_of(one.tool("pid")), text_of(two.tool("pid")))
            one.tool("ask_later", {"method": "roots/list"})
            one.stream.wait_question("roots/list", one)
            self.assertEqual(self.wait_logged("answer")[1]["result"],
                             {"roots": [{"uri": f"file:///{id(one)}"}]})
            two.tool("say", {"level": "error", "data": "two"})
            one.tool("say", {"level": "error", "data": "one"})
            self.assertEqual(one.stream.wait(MESSAGE)["params"]["data"], "one")
            self.assertEqual(two.stream.wait(MESSAGE)["params"]["data"], "two")

    def test_the_end_of_the_session_ends_its_upstream(self):
        with self.listen("--per", "session") as proxy:
            client = web.Web(proxy.url)
            pid = int(text_of(client.tool("pid")))
            client.delete()
            peers.wait_until_gone(pid)

    def test_an_unused_upstream_ends_and_comes_back(self):
        for per in ("session", "principal", "all"):
            with self.listen("--per", per, "--idle", "50ms") as proxy:
                client = web.Web(proxy.url)
                pid = int(text_of(client.tool("pid")))
                peers.wait_until_gone(pid)
                self.assertNotEqual(text_of(client.tool("pid")), str(pid))

    def test_more_sessions_than_upstreams_are_told(self):
        with self.listen("--per", "session", "--max-upstreams", "2") as proxy:
            one, two = web.Web(proxy.url), web.Web(proxy.url)
            one.tool("pid")  # one upstream reads the lists
            self.assertIn("--max-upstreams", two.tool("pid")["error"]["message"])
            pid = int(text_of(one.tool("pid")))
            one.delete()
            peers.wait_until_gone(pid)
            self.assertIn("result", two.tool("pid"))


class Later(Outside):
    def test_an_upstream_that_cannot_start_at_first_appears_later(self):
        begins = self.place / "begins"
        command, *arguments = self.upstream()
        with self.configured(
                a={"command": command, "args": arguments},
                b={"command": command,
                   "args": [*arguments, "--until", str(begins)]}) as client:
            names = self.names(client)
            self.assertIn("a_odd", names)
            self.assertNotIn("b_odd", names)
            begins.touch()
            client.wait_note("notifications/tools/list_changed")
            while "b_odd" not in self.names(client):
                client.wait_note("notifications/tools/list_changed")
            self.assertIn("result", client.tool("b_odd"))


if __name__ == "__main__":
    unittest.main()
