"""Includes point downwards only.

base <- wire <- engine <- store, runtime <- transport <- api; public headers are for
all. easy, examples, the demo and bindings include public headers only. Each system
library is included only by the room (directory) or file that wraps it. base, wire and
engine include no header that gives access to a socket, a clock, a thread or a file.

Inside engine the rooms have a direction too, for includes and for the functions that
they use. room_exceptions.txt lists the files that still break it: a line is removed as
soon as it is not needed any more, and no line is added. A transport includes only those
headers of the engine that show no struct of the engine.
"""

import posixpath
import re
from fnmatch import fnmatch
from pathlib import PurePosixPath

import lint

# The rooms that a room may include with quotes. A transport knows the engine through
# runtime/transport_port.h only.
ROOMS = {
    "base": {"base"},
    "wire": {"base", "wire"},
    "engine": {"base", "wire", "engine"},
    "store": {"base", "engine", "store"},
    "runtime": {"base", "wire", "engine", "store", "runtime"},
    "transport": {"base", "wire", "runtime", "board", "transport"},
    "inspect": {"base", "wire", "engine", "store", "inspect"},
    "board": {"base", "wire", "engine", "store", "inspect", "board"},
    "api": {"base", "wire", "engine", "store", "runtime", "transport", "inspect", "api"},
}

# The rooms that a room of the engine may use, besides itself and the files at engine's
# root.
ENGINE_ROOMS = {
    "conversation": set(),
    "log": {"conversation"},
    "cluster": {"conversation", "log"},
    "input": {"conversation", "log", "cluster"},
    "server": {"conversation", "log", "cluster", "input"},
    "client": {"conversation", "log", "input"},
    "dialect": {"conversation", "log", "cluster", "input", "server", "client"},
    "reverse": {
        "conversation", "log", "cluster", "input", "server", "client", "dialect"},
    "oauth": set(),
    "": set(),
}
EXCEPTIONS = "tests/lint/room_exceptions.txt"

# The headers of the engine that a transport may include, directly or through other
# headers.
SEEN_BY_TRANSPORTS = {
    "engine/port.h", "engine/event.h", "engine/events.def", "engine/handle.h",
    "engine/conversation/conn_port.h",
    "engine/server/server_port.h", "engine/client/exchange_port.h",
    "engine/client/loss.h", "engine/oauth/flow.h",
}

# Tables without code: rooms below api need the status names.
TABLES = {"api/errors.def", "api/reasons.def"}

# Libraries and the files that may include them.
LIBRARIES = {
    "openssl/*": ("core/base/crypto.c", "core/store/redis_tls.c", "core/transport/tls.c"),
    "libwebsockets.h": ("core/transport/socket_guest.c",
                         "core/transport/wake_descriptor.c"),
    "curl/*": ("core/transport/fetch*",),
    "sqlite3*.h": ("core/store/sqlite*",),
    "hiredis/*": ("core/store/redis*",),
    "libpq-fe.h": ("core/store/postgres*",),
    "sys/random.h": ("core/base/crypto.c", "core/proxy/*", "tests/*"),
    "ev.h": ("core/runtime/*", "core/transport/*"),
    "stdatomic.h": ("core/base/shared_text.c", "core/runtime/*", "core/store/*",
                    "core/transport/*", "core/proxy/*", "bindings/*", "tests/*"),
}

# Loads libraries for rooms that are not pure (link.py keeps the pure ones away from it).
LOADER = "core/base/late_library.c"

PURE_ROOMS = {"base", "wire", "engine"}
PURE_HEADERS = {
    "assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h",
    "stdalign.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h", "sys/queue.h",
    # Vector instructions, for code that also has a plain form.
    "arm_neon.h", "emmintrin.h", "immintrin.h",
}

PUBLIC_ONLY = ("core/easy/", "core/examples/", "core/proxy/", "tests/demo/", "bindings/")
# A header of the tests that includes system headers only.
PUBLIC_TOO = "tests/support/cutting_proxy.h"


def check_include(path, quoted, name, exists):
    """Returns why this #include is wrong, or None. exists(path) tells whether a file
    exists."""
    here = PurePosixPath(path)
    if name.startswith("segue/"):
        return "public headers are included as <segue/...>" if quoted else None
    if path.startswith("core/include/"):
        allowed = not quoted and name in ("stddef.h", "stdint.h")
        return None if allowed else "a public header includes <stddef.h>, <stdint.h> only"
    if not quoted:
        return check_system_include(path, name)
    if path.startswith(PUBLIC_ONLY):
        target = posixpath.normpath(here.parent / name)
        own = target.startswith((*PUBLIC_ONLY, PUBLIC_TOO)) and exists(target)
        return None if own else "only public headers are seen here"
    if not exists(f"core/{name}"):
        return "no such file below core/"
    room, target = here.parts[1], PurePosixPath(name)
    if name in TABLES or target.parts[0] in ROOMS[room]:
        if room == "transport" and target.parts[0] == "transport":
            return check_between_transports(here, target)
        return None
    return f"{room} may not include {target.parts[0]}"


def check_seen(paths, text_of):
    """Returns headers of the engine that a transport includes against the rules.
    text_of(path) reads a file below core/."""
    findings, seen = [], set()
    todo = [(name, path) for path in paths for name in quoted_names(text_of(path))]
    while todo:
        name, by = todo.pop()
        if name in seen or name in TABLES:
            continue
        seen.add(name)
        if name.startswith("engine/") and name not in SEEN_BY_TRANSPORTS:
            findings.append(f"core/{by}: transports see {name} through it")
        else:
            todo += [(inner, name) for inner in quoted_names(text_of(name))]
    return findings


def quoted_names(text):
    return [name for _, quoted, name in includes_of(text) if quoted]


# The files of each transport, by stem. The other files in the room are shared.
TRANSPORTS = {
    "pair": {"pair"},
    "fds": {"fds"},
    "custom": {"custom"},
    "spawn": {"spawn", "child", "stderr_relay"},
    "http_server": {
        "http_listen", "http_listener", "http_ready", "http_conn", "http_serve",
        "http_send", "http_answer", "http_route", "http_metrics", "http_board",
        "http_exchange", "http_exchange_answer",
        "http_exchange_link", "http_exchange_state", "http_exchange_text",
        "link", "link_peer", "tls", "socket_guest",
        "listen_socket", "acceptor",
        "bearer", "bearer_application", "bearer_cache", "bearer_check", "bearer_keys",
        "bearer_tokens",
    },
    "http_client": {
        "http_client", "http_client_exchange", "http_client_exchange_head",
        "http_client_exchange_old", "http_client_exchange_refusal",
        "http_client_exchange_response", "http_client_exchange_token",
        "http_client_response", "resumptions",
        "http_auth", "absent_oauth",
        "header_hook",
        "fetch", "fetch_direct", "fetch_easy", "fetch_head", "fetch_multi",
        "fetch_pool", "fetch_request", "fetch_state",
    },
}

# fetch.h knows no MCP: a server that fetches keys from elsewhere is its client, too.
GUESTS = {("bearer_keys", "fetch")}


def check_between_transports(here, target):
    """A file of one transport must not include those of another, and a shared file
    those of none."""
    for name, stems in TRANSPORTS.items():
        if (here.stem, target.stem) in GUESTS:
            continue
        if target.stem in stems and here.stem not in stems:
            return f"{target.name} is {name}'s: transports may not include each other"
    return None


def check_system_include(path, name):
    if path == LOADER:
        return None
    for pattern, users in LIBRARIES.items():
        if fnmatch(name, pattern) and not any(fnmatch(path, user) for user in users):
            return f"<{name}> belongs to {' and '.join(users)}"
        if fnmatch(name, pattern):
            return None
    parts = PurePosixPath(path).parts
    if parts[0] == "core" and parts[1] in PURE_ROOMS and name not in PURE_HEADERS:
        return f"{parts[1]} may not include <{name}>"
    return None


def includes_of(text):
    pattern = r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)'
    bare = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    for match in re.finditer(pattern, bare, flags=re.M):
        line = bare.count("\n", 0, match.start()) + 1
        yield line, match.group(1) is not None, match.group(1) or match.group(2)


def check_text(path, text, exists):
    return [
        f"{path}:{line}: {name}: {why}"
        for line, quoted, name in includes_of(text)
        if (why := check_include(path, quoted, name, exists))
    ]


# A definition of an external function, in the style of this tree.
DEFINITION = re.compile(
    r"^(?:[A-Za-z_][\w \t*]*?[ *\n])(sgi_\w+)\s*\([^;{}]*\)\s*\n\{", re.M)


def engine_room(path):
    """Returns the room of a file below core/engine; "" = its root; None = the file is
    elsewhere."""
    parts = PurePosixPath(path).parts
    if parts[:2] != ("core", "engine"):
        return None
    return parts[2] if len(parts) > 3 else ""


def engine_uses(texts):
    """Returns {path: rooms of the engine that it uses}, of {path: text}."""
    plain = {path: lint.without_comments(text) for path, text in texts.items()}
    homes = {
        match.group(1): engine_room(path)
        for path, text in plain.items() if path.endswith(".c")
        for match in DEFINITION.finditer(text)
    }
    uses = {}
    for path, text in texts.items():
        names = re.findall(r"\bsgi_\w+", plain[path]) if path.endswith(".c") else []
        rooms = {homes[name] for name in names if name in homes}
        rooms |= {
            engine_room(f"core/{name}")
            for _, quoted, name in includes_of(text) if quoted}
        uses[path] = rooms - {None, "", engine_room(path)}
    return uses


def check_engine(texts, exceptions):
    """Returns what points in the wrong direction inside the engine. exceptions: lines
    of the list."""
    findings, needed = [], set()
    for path, rooms in engine_uses(texts).items():
        here = engine_room(path)
        if here not in ENGINE_ROOMS:
            findings.append(f"{path}:1: the room {here} is not in ENGINE_ROOMS")
            continue
        for room in sorted(rooms - ENGINE_ROOMS[here]):
            needed.add(f"{path} {room}")
            if f"{path} {room}" not in exceptions:
                findings.append(f"{path}:1: engine/{here} may not use engine/{room}")
    return findings + [
        f"{EXCEPTIONS}:1: not needed any more, take it out: {line}"
        for line in exceptions if line not in needed
    ]


def check_engine_rules():
    """Tests the rules of check_engine with made-up files."""
    low, high = "core/engine/log/low.c", "core/engine/server/high.c"
    tree = {low: "void sgi_low(void)\n{\n}\n", high: "void sgi_high(void)\n{\n}\n"}
    up = {**tree, low: tree[low] + "static int x(void)\n{\n    sgi_high();\n}\n"}
    down = {**tree, high: tree[high] + "static int x(void)\n{\n    sgi_low();\n}\n"}
    by_include = {**tree, low: '#include "engine/server/high.h"\n'}
    told = {**tree, low: tree[low] + "/* sgi_high() */\n"}
    for wrong in (up, by_include):
        lint.expect(check_engine(wrong, []), "a use of server by log was let pass")
        lint.expect(not check_engine(wrong, [f"{low} server"]), "an exception is refused")
    for right in (tree, down, told):
        lint.expect(not check_engine(right, []), "a use of log by server was refused")
    lint.expect(check_engine(tree, [f"{low} server"]), "an exception that nobody needs")
    lint.expect(check_engine({"core/engine/new/x.c": ""}, []), "an unknown room")


def self_check():
    check_engine_rules()
    wrong = [
        ("core/base/buf.c", '#include "wire/json_read.h"'),
        ("core/wire/jsonrpc.c", '  #  include "engine/engine.h"'),
        ("core/engine/dialect/plain.c", '#include "runtime/loop.h"'),
        ("core/engine/server/task.c", '#include "store/store.h"'),
        ("core/store/memory.c", '#include "runtime/loop.h"'),
        ("core/runtime/loop.c", '#include "transport/transport.h"'),
        ("core/transport/pair.c", '#include "engine/engine.h"'),
        ("core/transport/stdio.c", '#include "transport/spawn.h"'),
        ("core/transport/http_client_exchange.c", '#include "transport/http_conn.h"'),
        ("core/transport/link.c", '#include "transport/fetch.h"'),
        ("core/transport/stream.c", '#include "transport/stderr_relay.h"'),
        ("core/transport/link.c", "#include <curl/curl.h>"),
        ("core/transport/pair.c", '#include "api/guard.h"'),
        ("core/base/map.c", "#include <pthread.h>"),
        ("core/engine/server/task.c", "#include <time.h>"),
        ("core/engine/server/task.c", "#include <openssl/evp.h>"),
        ("core/runtime/loop.c", "#include <sqlite3.h>"),
        ("core/api/api_call.c", "#include <ev.h>"),
        ("core/base/buf.c", '#include "buf.h"'),
        ("core/examples/echo.c", '#include "base/buf.h"'),
        ("core/proxy/text.h", '#include "../engine/engine.h"'),
        ("core/include/segue/segue.h", "#include <stdbool.h>"),
        ("core/api/api_call.c", '#include "segue/segue.h"'),
    ]
    right = [
        ("core/engine/dialect/plain.c", '#include "engine/engine.h"'),
        ("core/transport/pair.c", '#include "runtime/transport_port.h"'),
        ("core/transport/spawn.c", '#include "transport/stderr_relay.h"'),
        ("core/transport/fds.c", '#include "transport/stream.h"'),
        ("core/transport/fetch_state.h", "#include <curl/curl.h>"),
        ("core/api/api_call.c", '#include "transport/transport.h"'),
        ("core/base/crypto.c", "#include <openssl/evp.h>"),
        ("core/proxy/text.h", '#include "../easy/text.h"'),
        ("core/engine/error.c", '#include "api/errors.def"'),
        ("core/base/buf.c", '/* no\n#include "api/guard.h"\n*/'),
    ]
    there = lambda path: path not in ("core/buf.h", "core/examples/base/buf.h")
    for path, text in wrong:
        lint.expect(check_text(path, text, there), f"{text} in {path} was let pass")
    for path, text in right:
        lint.expect(not check_text(path, text, there), f"{text} in {path} was refused")
    tree = {
        "transport/pair.c": '#include "runtime/transport_port.h"',
        "runtime/transport_port.h": '#include "engine/port.h"',
        "engine/port.h": "",
    }
    lint.expect(not check_seen(["transport/pair.c"], tree.get), "the door was refused")
    tree["engine/port.h"] = '#include "engine/engine.h"'
    lint.expect(check_seen(["transport/pair.c"], tree.get), "a side door was let pass")


def main():
    self_check()
    paths = lint.files(
        "core/**/*.[ch]", "tests/demo/*.[ch]", "bindings/**/*.[chi]")
    findings = []
    for path in paths:
        exists = lambda name: (lint.ROOT / name).is_file()
        findings += check_text(path.as_posix(), lint.read(path), exists)
    engine = lint.files("core/engine/**/*.[ch]")
    texts = {path.as_posix(): lint.read(path) for path in engine}
    findings += check_engine(texts, lint.read(EXCEPTIONS).split("\n")[:-1])
    transports = [path.relative_to("core").as_posix() for path in paths
                  if path.parts[:2] == ("core", "transport")]
    findings += check_seen(transports, lambda name: lint.read(f"core/{name}"))
    lint.finish(findings, f"{len(paths)} files")


main()
