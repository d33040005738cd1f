"""Arguments, files and addresses that are wrong: one clear sentence for each, and the
exit status that core/docs/proxy.md lists. Nothing is started before the arguments are
right."""

import json
import socket
import subprocess
import unittest

import peers
import stage

LISTEN = ("--listen", "127.0.0.1:0")
WRONG, FAILED, UNUSABLE = 2, 1, 3


class WrongInput(stage.Stage):
    def run_proxy(self, *words):
        """Returns the exit status and the lines on standard error."""
        told = subprocess.run([peers.PROXY, *words], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=peers.PATIENCE)
        self.assertEqual(told.stdout, "")
        return told.returncode, told.stderr.splitlines()

    def check(self, status, sentence, *words, upstream=None):
        """The sentence is in one line, and in no other. upstream: what follows `--`."""
        command = self.upstream() if upstream is None else upstream
        given = [*words, *["--"] * bool(command), *command]
        ended, lines = self.run_proxy(*given)
        self.assertEqual(ended, status, (given, lines))
        self.assertEqual(len([line for line in lines if sentence in line]), 1,
                         (sentence, lines))
        for line in lines:
            self.assertNotIn("SEGUE_E_", line)
        return lines

    def file_of(self, name, text):
        (self.place / name).write_text(text)
        return str(self.place / name)

    def test_values_of_options(self):
        for name, value, sentence in (
                ("--listen", "abc", "this is not HOST:PORT, such as 127.0.0.1:8000"),
                ("--listen", "127.0.0.1:99999", "this is not HOST:PORT"),
                ("--listen", "", "this is not HOST:PORT"),
                ("--store", "mysql://x", "this is not a file, redis://HOST:PORT or"),
                ("--store", "", "this is not a file"),
                ("--task-after", "-5s", "this is not a time, such as 20s"),
                ("--timeout", "1d", "this is not a time"),
                ("--per", "user", "this is not all, principal or session"),
                ("--max-upstreams", "0", "this is not a number from 1 to 100000"),
                ("--header", "X", "this is not a header, such as"),
                ("--on-close", "no", "this is not keep or cancel"),
                ("--log", "xml", "this is not text or json"),
                ("--log-level", "all", "this is not debug, info, warning or error"),
                ("--seal-key", "/nowhere/key", "No such file or directory")):
            self.check(WRONG, f"{name}: '{value}': {sentence}", name, value)
            self.check(WRONG, f"{name}: '{value}': {sentence}", f"{name}={value}")
        short = self.file_of("short", "x" * 31)
        self.check(WRONG, "not a file of 32 random bytes", "--seal-key", short)
        self.assertEqual(self.log.take(), [])

    def test_options_that_do_not_exist_or_lack_something(self):
        self.check(WRONG, "unknown option --bogus", "--bogus")
        self.check(WRONG, "a value is missing after --store", "--store", upstream=[])
        self.check(WRONG, "an option that has none: --check=1", "--check=1")
        for name, needed in (("--cert", "--listen"), ("--cors", "--listen"),
                             ("--tokens", "--listen"), ("--issuer", "--listen"),
                             ("--path", "--listen")):
            words = (name,) if name == "--cors" else (name, "x")
            self.check(WRONG, f"{name} needs {needed}", *words)
        for name in ("--jwks-file", "--jwks-url", "--resource", "--scopes"):
            self.check(WRONG, f"{name} needs --issuer", *LISTEN, name, "x")
        for name in ("--key", "--client-ca"):
            self.check(WRONG, f"{name} needs --cert", *LISTEN, name, "x")
        self.check(WRONG, "--header needs a URL", "--header", "A: b")

    def test_upstreams_of_the_arguments(self):
        self.check(WRONG, "name an upstream: a command after --, a URL, or --config",
                   upstream=[])
        self.check(WRONG, "a command is missing after --", "--", upstream=[])
        for words in ("server", "ftp://host/mcp", "http://", "https:///mcp"):
            self.check(WRONG, f"neither an option nor an http or https URL: {words}",
                       words, upstream=[])
        for words in (["--", "server"], ["http://127.0.0.1/mcp"]):
            self.write_config(a=self.server())
            self.check(WRONG, f"remove the argument {words[0]}", "--config",
                       str(self.file), *words, upstream=[])
        self.check(WRONG, "remove --header", "--header", "A: b", "--config",
                   str(self.file), upstream=[])

    def check_start(self, command, status, words):
        """The failure is told once, then what the last attempt wrote."""
        lines = self.check(UNUSABLE, "the server cannot be used: ", upstream=[*command])
        name = command[0].rsplit("/", 1)[1]
        self.assertEqual(lines[-2:], [
            f"segue-proxy: {name}: the server cannot be used: the program exited with "
            f"status {status}", f"segue-proxy: {name}: | {words}"])
        return lines

    def test_a_program_that_cannot_start(self):
        locked = self.file_of("locked", "#!/bin/sh\n")
        self.check_start(["/nowhere/program"], 127, "segue-proxy: cannot start "
                         "/nowhere/program: No such file or directory")
        self.check_start([locked], 127, f"segue-proxy: cannot start {locked}: "
                         "Permission denied")
        lines = self.check_start(["/bin/sh", "-c", "echo no licence >&2; exit 7"], 7,
                                 "no licence")
        self.assertEqual(len(lines), 4, lines)  # and two attempts

    def test_a_failure_is_told_once_where_the_proxy_serves(self):
        proxy = self.listen(upstream=["/nowhere/program"])
        lines = [*proxy.before, proxy.wait_line("not ready")]
        self.assertEqual(len([line for line in lines if "cannot be used: " in line]), 1)
        proxy.process.terminate()
        rest = proxy.process.stderr.read()
        self.assertNotIn("the server cannot be used", rest)

    def test_check_prints_a_failure_once(self):
        told = subprocess.run([peers.PROXY, "--check", "--", "/nowhere/program"],
                              capture_output=True, text=True, timeout=peers.PATIENCE)
        self.assertEqual(told.returncode, UNUSABLE)
        self.assertNotIn("cannot be used", told.stderr)
        self.assertEqual(told.stdout.splitlines()[:2], [
            "program: failed, the program exited with status 127",
            "  | segue-proxy: cannot start /nowhere/program: No such file or directory"])

    def test_a_url_where_nobody_answers_says_why(self):
        with socket.create_server(("127.0.0.1", 0)) as held:
            port = held.getsockname()[1]
        self.check(UNUSABLE, "cannot be used: the server did not answer in time: "
                   f"Failed to connect to 127.0.0.1 port {port}", "--start-timeout",
                   "100ms", f"http://127.0.0.1:{port}/mcp", upstream=[])

    def test_stores(self):
        text = self.file_of("text", "this is no store, and long enough for a header" * 9)
        for where, sentence in ((text, "not a Segue store"),
                                ("/nowhere/x.db", "unable to open database file"),
                                ("redis://127.0.0.1:1", "Connection refused"),
                                ("postgresql://127.0.0.1:1/x", "Connection refused")):
            (line,) = self.check(FAILED, sentence, "--store", where)
            self.assertTrue(line.startswith("segue-proxy: the store cannot be opened: "))
        self.check(WRONG, "the database is not a number", "--store",
                   "redis://127.0.0.1/x")

    def test_addresses(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            (line,) = self.check(FAILED, "Address already in use", "--listen",
                                 f"127.0.0.1:{port}")
        self.assertEqual(line, f"segue-proxy: cannot serve: 127.0.0.1:{port}: "
                         "Address already in use")
        self.check(WRONG, "this is not an IP address", "--listen", "host.invalid:1")
        self.check(FAILED, "No such file or directory", "--listen", "unix:/nowhere/x")
        self.check(FAILED, "LISTEN_FDS", "--listen", "systemd")
        self.check(WRONG, "--path: 'mcp': has to begin with /", *LISTEN, "--path", "mcp")
        self.check(WRONG, "is a path that the proxy needs itself", *LISTEN, "--path",
                   "/health")

    def test_certificates(self):
        garbage = self.file_of("garbage.pem", "garbage\n")
        nothing = "the file has nothing of this kind in PEM form"
        certificate, key, other = (str(self.place / name) for name in "cko")
        for made in (other, key):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                            "-days", "1", "-subj", "/CN=localhost", "-keyout", made,
                            "-out", certificate], check=True, capture_output=True)
        for words, sentence in (
                (("--cert", "/nowhere/c.pem"), "/nowhere/c.pem: No such file or dir"),
                (("--cert", garbage), f"the certificate {garbage}: {nothing}"),
                (("--cert", certificate), f"the private key {certificate}: {nothing}"),
                (("--cert", certificate, "--key", garbage),
                 f"the private key {garbage}: {nothing}"),
                (("--cert", certificate, "--key", other), "key values mismatch"),
                (("--cert", certificate, "--key", key, "--client-ca", garbage),
                 f"the file of client authorities {garbage}: {nothing}")):
            (line,) = self.check(FAILED, sentence, *LISTEN, *words)
            self.assertTrue(line.startswith("segue-proxy: cannot serve: "), line)

    def test_tokens(self):
        garbage = self.file_of("tokens", "# nobody\nada\n")
        self.check(WRONG, "No such file or directory", *LISTEN, "--tokens", "/nowhere/t")
        self.check(WRONG, "line 2", *LISTEN, "--tokens", garbage)

    def config(self, text):
        self.file.write_text(text)
        return ("--config", str(self.file))

    def test_files_of_the_configuration(self):
        self.check(WRONG, "/nowhere/x.json: No such file or directory", "--config",
                   "/nowhere/x.json", upstream=[])
        self.check(WRONG, "Is a directory", "--config", str(self.place), upstream=[])
        for text, sentence in (
                ("", "the file is empty"),
                (" " * (4 * 1024 * 1024 + 1), "the file is over 4 MiB"),
                ('{\n"mcpServers": {\n}\n,}', "at byte 21, in line 4"),
                ("[]", 'has no object "mcpServers"'),
                ('{"mcpServers": {}}', "names no upstream")):
            self.check(WRONG, sentence, *self.config(text), upstream=[])

    def test_members_of_an_entry(self):
        program = {"command": "/nowhere/program"}
        for entry, sentence in (
                (1, "mcpServers.a.command is missing"),
                ({"url": "ftp://x"}, "mcpServers.a.url is not an http or https URL"),
                ({**program, "trustHints": "yes"}, "a.trustHints is not true or false"),
                ({**program, "disabled": 1}, "mcpServers.a.disabled is not true or"),
                ({**program, "tools": {"x": {"hidden": "no"}}},
                 "mcpServers.a.tools.x.hidden is not true or false"),
                ({**program, "tools": {"x": {"hiden": True}}},
                 'mcpServers.a.tools.x.hiden is unknown'),
                ({**program, "tools": {"x": {"repeat": 1}}},
                 "mcpServers.a.tools.x.repeat is not hint, never or always")):
            words = self.config(json.dumps({"mcpServers": {"a": entry}}))
            self.check(WRONG, sentence, *words, upstream=[])

    def test_a_member_that_the_proxy_does_not_know_is_told_and_left_to_the_host(self):
        self.write_config(a=self.server(comand="x", disabled=False, trustHints=True))
        told = subprocess.run([peers.PROXY, "--check", "--config", str(self.file)],
                              capture_output=True, text=True, timeout=peers.PATIENCE)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(told.stderr.splitlines(), [
            f"segue-proxy: {self.file}: mcpServers.a.comand is unknown and has no "
            "effect"])


if __name__ == "__main__":
    unittest.main()
