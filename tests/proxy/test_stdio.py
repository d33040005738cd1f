"""segue-proxy between one client and one program: everything passes, unchanged."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import peers
import upstream


def run(*arguments):
    return subprocess.run([peers.PROXY, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=peers.PATIENCE)


class Arguments(unittest.TestCase):
    def test_help_and_version(self):
        told = run("--help")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertIn("--listen HOST:PORT", told.stdout)
        self.assertRegex(run("--version").stdout, r"^segue-proxy \d+\.\d+\.\d+\n$")

    def test_wrong_arguments_end_with_2(self):
        for arguments in ([], ["--"], ["--nope", "x"], ["--listen"], ["no-url"],
                          ["--task-after", "soon", "--", "true"],
                          ["--config", "/nowhere", ]):
            told = run(*arguments)
            self.assertEqual(told.returncode, 2, arguments)
            self.assertTrue(told.stderr.startswith("segue-proxy: "), told.stderr)

    def test_a_failure_of_the_proxy_itself_ends_with_1(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for options, why in (
                    (("--store", "/nowhere/tasks.db"), "the store cannot be opened"),
                    (("--listen", f"127.0.0.1:{port}"), str(port))):
                told = run(*options, "--", *peers.UPSTREAM)
                self.assertEqual(told.returncode, 1, told.stderr)
                self.assertIn(why, told.stderr)

    def test_a_key_that_is_too_short_is_refused(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x" * 31)
            file.flush()
            told = run("--seal-key", file.name, "--", *peers.UPSTREAM)
            self.assertEqual(told.returncode, 2)
            self.assertIn("this is not a file of 32 random bytes", told.stderr)

    def test_an_upstream_that_cannot_start_ends_with_3_and_its_words(self):
        told = run("--", *peers.UPSTREAM, "--fail")
        self.assertEqual(told.returncode, 3)
        self.assertIn("it cannot start: no licence", told.stderr)
        told = run("--", "/nowhere/program")
        self.assertEqual(told.returncode, 3)
        self.assertIn("cannot start /nowhere/program", told.stderr)


class Passing(unittest.TestCase):
    def test_a_result_is_the_same(self):
        with peers.proxy() as client:
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
            wrong = client.tool("wrong")["result"]
            self.assertIs(wrong["isError"], True)
            self.assertEqual(client.close(), 0)

    def test_numbers_pass_digit_by_digit(self):
        with peers.proxy() as client:
            client.begin("tools/call", {"name": "odd"})
            raw = client.wait(client.last_id)
            self.assertEqual(raw["result"]["content"][1]["rays"][1],
                             20000000000000000001)

    def test_the_server_introduces_itself_as_the_upstream(self):
        with peers.proxy(capabilities={"sampling": {}}) as client:
            self.assertEqual(client.hello["serverInfo"]["name"], "odd-server")
            self.assertEqual(client.hello["serverInfo"]["version"], "7")
            self.assertEqual(client.hello["serverInfo"]["title"], "Odd")

    def test_the_upstream_sees_what_the_client_can_do(self):
        for given in ({}, {"elicitation": {}}, {"sampling": {}, "roots": {}}):
            with peers.proxy(capabilities=given) as client:
                seen = json.loads(client.hello["instructions"])
                questions = ("elicitation", "sampling", "roots")
                self.assertEqual({k: seen[k] for k in questions if k in seen}, given)

    def test_all_pages_of_a_list_are_there_with_all_members(self):
        with peers.proxy() as client:
            tools = client.call("tools/list")["result"]["tools"]
            own = [{k: v for k, v in tool.items() if k != "execution"} for tool in tools]
            self.assertEqual(own, upstream.TOOLS)

    def test_an_error_is_the_same(self):
        with peers.proxy() as client:
            self.assertEqual(client.tool("failing")["error"], {
                "code": -32042, "message": "open a page",
                "data": {"elicitations": [{"mode": "url"}]}})

    def test_progress_and_log_messages_pass(self):
        with peers.proxy() as client:
            client.tool("steps", _meta={"progressToken": "p"})
            progress = [note["params"] for note in client.notes
                        if note["method"] == "notifications/progress"]
            self.assertEqual([p["progress"] for p in progress], [0.5, 1.5, 2.5])
            self.assertEqual(progress[2], {"progressToken": "p", "progress": 2.5,
                                           "total": 3, "message": "step 2"})
            logs = [note["params"] for note in client.notes
                    if note["method"] == "notifications/message"]
            self.assertEqual(logs[0], {"level": "warning", "logger": "steps",
                                       "data": {"step": 0}})
            self.assertEqual(len(logs), 3)

    def test_meta_passes_without_the_members_of_the_conversation(self):
        with peers.proxy() as client:
            meta = client.tool("meta", _meta={"a": 1, "progressToken": 9})
            meta = meta["result"]["_meta"]
            self.assertEqual(meta["a"], 1)
            self.assertNotEqual(meta.get("progressToken"), 9)

    def test_a_cancelled_call_is_cancelled_above(self):
        with tempfile.TemporaryDirectory() as place:
            log = peers.Pipe(Path(place) / "log")
            self.addCleanup(log.close)
            with peers.proxy(upstream=[*peers.UPSTREAM, "--log", log.path]) as client:
                number = client.begin("tools/call", {"name": "sleep", "_meta": {
                    "progressToken": 1}})
                client.wait_note("notifications/progress")
                client.send({"method": "notifications/cancelled", "params": {
                    "requestId": number}})
                self.assertEqual(log.wait(2), ["cancelled", {}])
                self.assertEqual(client.close(), 0)

    def test_questions_go_to_the_client_and_back(self):
        form = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
        sampling = {"messages": [{"role": "user", "content": {
            "type": "text", "text": "q"}}], "maxTokens": 5}
        message = {"role": "assistant", "model": "m",
                   "content": {"type": "text", "text": "a"}}
        roots = {"roots": [{"uri": "file:///r", "name": "r"}]}
        can = {"elicitation": {}, "sampling": {}, "roots": {}}
        with peers.proxy(capabilities=can) as client:
            asked = []
            client.answers = {
                "elicitation/create": lambda params: asked.append(params) or {
                    "result": {"action": "accept", "content": {"x": 1}}},
                "sampling/createMessage": lambda params: asked.append(params) or {
                    "result": message},
                "roots/list": lambda params: {"result": roots},
            }
            for method, params, answer in (
                    ("elicitation/create", form,
                     {"action": "accept", "content": {"x": 1}}),
                    ("sampling/createMessage", sampling, message),
                    ("roots/list", {}, roots)):
                told = client.tool("ask", {"method": method, "params": params})
                self.assertEqual(told["result"]["structuredContent"], {"result": answer})
            self.assertEqual([p["message"] for p in asked if "message" in p], ["m"])
            client.answers["sampling/createMessage"] = lambda params: {
                "error": {"code": -1, "message": "no", "data": {"why": 2}}}
            told = client.tool("ask", {"method": "sampling/createMessage",
                                       "params": sampling})
            self.assertEqual(told["result"]["structuredContent"]["error"],
                             {"code": -1, "message": "no", "data": {"why": 2}})

    def test_an_answer_that_does_not_fit_the_form_ends_the_question(self):
        with peers.proxy(upstream=[peers.FIXTURE],
                         capabilities={"elicitation": {}}) as client:
            client.answers["elicitation/create"] = lambda params: {
                "result": {"action": "accept", "content": {"confirm": "maybe"}}}
            text = client.tool("ask_once")["result"]["content"][0]["text"]
            self.assertNotIn("maybe", text)

    def test_resources_templates_prompts_and_completion_pass(self):
        with peers.proxy() as client:
            self.assertEqual(client.call("resources/list")["result"]["resources"],
                             [{"uri": "x:1", "name": "one", "size": 3}])
            template = "t:{id}{?more,other*}"
            listed = client.call("resources/templates/list")["result"]
            self.assertEqual(listed["resourceTemplates"],
                             [{"uriTemplate": template, "name": "odd template"}])
            for uri in ("x:1", "t:5?more=1", "unlisted:thing"):
                self.assertEqual(client.call("resources/read", {"uri": uri})["result"], {
                    "contents": [{"uri": uri, "text": "read", "later": 1}],
                    "_meta": {"m": 1}})
            error = client.call("resources/read", {"uri": "x:none"})["error"]
            self.assertEqual((error["code"], error["message"]), (-32002, "no such thing"))
            prompt = client.call("prompts/get", {"name": "p", "arguments": {"a": "1"}})
            self.assertEqual(prompt["result"]["messages"][0]["content"]["text"],
                             '{"a": "1"}')
            for ref in ({"type": "ref/prompt", "name": "p"},
                        {"type": "ref/resource", "uri": template}):
                params = {"ref": ref, "argument": {"name": "a", "value": "v"},
                          "context": {"arguments": {"b": "2"}}}
                told = client.call("completion/complete", params)["result"]["completion"]
                seen = json.loads(told["values"][0])
                seen.pop("_meta", None)
                self.assertEqual(seen, params)

    def test_a_list_that_changes_is_read_again(self):
        with peers.proxy() as client:
            client.tool("grow")
            client.wait_note("notifications/tools/list_changed")
            tools = client.call("tools/list")["result"]["tools"]
            self.assertIn("grown", [tool["name"] for tool in tools])


def parent_of(pid):
    """Returns the parent of a process, and the name of the file that the parent runs."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    parent = stat.rpartition(")")[2].split()[1]
    return parent, os.path.basename(os.readlink(f"/proc/{parent}/exe"))


class Processes(unittest.TestCase):
    def pid_of(self, client):
        client.begin("tools/call", {"name": "sleep", "_meta": {"progressToken": 1}})
        note = client.wait_note("notifications/progress")
        return int(note["params"]["message"].split()[1])

    def kill(self, client, guard):
        """Kills the proxy and waits for the end of all that it has started."""
        left = int(client.tool("leave_child")["result"]["content"][0]["text"])
        pid = self.pid_of(client)
        self.assertEqual(parent_of(pid)[1], guard)
        client.process.kill()
        client.process.wait()
        peers.wait_until_gone(pid)
        peers.wait_until_gone(left)

    def test_no_process_outlives_a_killed_proxy(self):
        with peers.proxy() as client:
            self.kill(client, "segue-proxy-guard")

    def test_without_the_program_of_the_guard_the_proxy_is_the_guard(self):
        with tempfile.TemporaryDirectory() as place:
            alone = shutil.copy(peers.PROXY, place)
            with peers.Client([alone, "--", *peers.UPSTREAM]) as client:
                self.kill(client, "segue-proxy")

    def test_no_process_outlives_a_proxy_that_ends(self):
        with peers.proxy() as client:
            left = int(client.tool("leave_child")["result"]["content"][0]["text"])
            self.assertEqual(client.close(), 0)
            peers.wait_until_gone(left)

    def test_a_call_that_the_upstream_did_not_survive_has_an_unknown_outcome(self):
        with peers.proxy() as client:
            error = client.tool("die")["error"]
            self.assertEqual(error["data"]["reason"], "outcome_unknown")
            self.assertIn("last words", error["data"]["stderr"])
            self.assertIn("outcome unknown", error["message"])
            # the next call finds the upstream again
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)


if __name__ == "__main__":
    unittest.main()
