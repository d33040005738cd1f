"""The blocks of C in the guides compile.

A block with a main is compiled as it stands. Of any other block the definitions come
first, and the rest becomes the body of a function. A name that the block uses and does
not declare gets its declaration from NAMES. The block itself declares structs of
options, because several kinds of them are called options.
"""

import re
import subprocess

import lint

PAGES = ("README.md", "core/README.md",  # each has a quick start, which also runs
         "core/docs/logs-and-traces.md", "core/docs/site/pages/how-to/custom-store.md")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror",
          "-Wno-unused-parameter", "-Wno-unused-function", "-Wno-unused-variable",
          "-Wno-unused-but-set-variable"]
INCLUDES = ("segue/segue.h", "segue/segue_auth.h", "segue/segue_ext.h",
            "segue/easy.h",
            "poll.h", "signal.h", "stdbool.h", "stdio.h", "string.h")
NAMES = {
    "runtime": "segue_runtime *runtime",
    "server": "segue_server *server",
    "host": "segue_server *host",
    "transport": "segue_transport *transport",
    "listener": "segue_listener *listener",
    "session": "segue_session *session",
    "store": "segue_store *store",
    "error": "segue_error *error",
    "call": "segue_call *call",
    "item": "segue_item_options item",
    "events": "segue_request_events events",
    "json": "const char *json",
    "params": "const char *params",
    "values": "const char *const *values",
    "len": "size_t len",
    "count": "size_t count",
    "total": "int64_t total",
    "has_more": "int32_t has_more",
    "timeout_ms": "int64_t timeout_ms",
    "mine": "int mine",
    "user": "void *user",
    "on_input": "void on_input(void *user, segue_call *call, segue_status status, "
                "const char *json, size_t len)",
    "ask_the_model": "void ask_the_model(void *user, segue_call *call)",
    "serve_mine": "void serve_mine(int fd)",
    "open_browser": "void open_browser(const char *url)",
    "fetch_new_token": "const char *fetch_new_token(void *user)",
    "current_token": "const char *current_token(void *user)",
    "read_text": "bool read_text(const char *path, char *text, size_t *len)",
    "start_introspection": "void start_introspection(const char *token, "
                           "segue_bearer *bearer)",
}
DEFINITION = re.compile(
    r"(?:^static [^\n]*;\n|^(?:static|struct) [^\n;]*\n?\{\n.*?^\};?\n)\n*", re.M | re.S)


def blocks(text):
    """Returns (line, text) of each block of C."""
    for match in re.finditer(r"^```c\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, match.start(1)) + 1, match.group(1)


def declares(block, name):
    return re.search(rf"^\s*(?:[\w]+ )+\**{name}(?:;|,| =|\[|\()", block, re.M)


def source(block):
    if "int main(" in block:
        return block
    parts = [f"#include <{name}>\n" for name in INCLUDES]
    for name, declaration in NAMES.items():
        if re.search(rf"(?<![\w>.]){name}\b", block) and not declares(block, name):
            parts.append(f"extern {declaration};\n")
    definitions = DEFINITION.findall(block)
    rest = DEFINITION.sub("", block)
    parts += definitions
    parts.append(f"extern void use(void);\nvoid use(void)\n{{\n{rest}}}\n")
    return "".join(parts)


def complaint(text):
    command = ["gcc", "-x", "c", "-std=c11", *STRICT, f"-I{lint.ROOT}/core/include",
               "-D_GNU_SOURCE", "-fsyntax-only", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    return result.stderr or ("refused" if result.returncode else "")


def main():
    lint.expect(not complaint(source("segue_runtime_run(runtime);\n")), "refuses all")
    for planted in ("segue_runtime_run(server);\n", "segue_walk(runtime);\n",
                    "static int *f(void)\n{\n    return 1;\n}\n"):
        lint.expect(complaint(source(planted)), f"does not see {planted}")
    findings, count = [], 0
    for page in PAGES:
        for line, block in blocks(lint.read(page)):
            count += 1
            if found := complaint(source(block)):
                findings.append(f"{page}:{line}: {found.strip()}")
    lint.expect(count >= 20, f"{count} blocks are too few")
    lint.finish(findings, f"{count} blocks")


main()
