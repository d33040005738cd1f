"""Includes point downwards only.

base <- wire <- engine <- store, runtime <- transport <- api; public headers are for all.
Examples, the demo and bindings see public headers only. A system library is seen by the
one room (or file) that wraps it, and base, wire and engine see no header that could bring
a socket, a clock, a thread or a file.
"""

import re
from fnmatch import fnmatch
from pathlib import PurePosixPath

import lint

# What a room may include with quotes. A transport knows the engine through
# runtime/exchange.h only.
ROOMS = {
    "base": {"base"},
    "wire": {"base", "wire"},
    "engine": {"base", "wire", "engine"},
    "store": {"base", "engine", "store"},
    "runtime": {"base", "wire", "engine", "store", "runtime"},
    "transport": {"base", "wire", "runtime", "transport"},
    "api": {"base", "wire", "engine", "store", "runtime", "transport", "api"},
}

# Tables without code: status names are needed lower than api.
TABLES = {"api/errors.def", "api/reasons.def"}

# Libraries and the files that may see them.
LIBRARIES = {
    "openssl/*": ("core/base/crypto.c", "core/store/redis_tls.c", "core/transport/tls.c"),
    "libwebsockets.h": ("core/transport/socket_guest.c",),
    "curl/*": ("core/transport/fetch*",),
    "sqlite3*.h": ("core/store/sqlite*",),
    "hiredis/*": ("core/store/redis*",),
    "ev.h": ("core/runtime/*", "core/transport/*"),
}

PURE_ROOMS = {"base", "wire", "engine"}
PURE_HEADERS = {
    "assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h",
    "stdalign.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h", "sys/queue.h",
    # vector instructions, for code that has a plain twin
    "arm_neon.h", "emmintrin.h", "immintrin.h",
}

PUBLIC_ONLY = ("core/examples/", "tests/demo/", "bindings/")


def check_include(path, quoted, name, exists):
    """Why this #include is wrong, or None. exists(path) tells whether a file is there."""
    here = PurePosixPath(path)
    if name.startswith("segue/"):
        return "public headers are included as <segue/...>" if quoted else None
    if path.startswith("core/include/"):
        allowed = not quoted and name in ("stddef.h", "stdint.h")
        return None if allowed else "a public header includes <stddef.h>, <stdint.h> only"
    if not quoted:
        return check_system_include(path, name)
    if path.startswith(PUBLIC_ONLY):
        own = exists(str(here.parent / name))
        return None if own else "only public headers are seen here"
    if not exists(f"core/{name}"):
        return "no such file below core/"
    room, target = here.parts[1], PurePosixPath(name)
    if name in TABLES or target.parts[0] in ROOMS[room]:
        if room == "transport" and target.parts[0] == "transport":
            return check_between_transports(here, target)
        return None
    return f"{room} may not include {target.parts[0]}"


# The files of each transport, by stem. The others in the room are shared.
TRANSPORTS = {
    "pair": {"pair"},
    "fds": {"fds"},
    "custom": {"custom"},
    "spawn": {"spawn", "child", "relay"},
    "http_server": {
        "http_listener", "http_conn", "http_serve", "http_send", "http_answer",
        "http_route", "link", "link_peer", "tls", "socket_guest", "listen_socket",
        "acceptor",
        "bearer", "bearer_ask", "bearer_cache", "bearer_check", "bearer_keys",
    },
    "http_client": {
        "http_client", "http_ask", "http_ask_head", "http_ask_refusal",
        "http_ask_token", "http_auth", "absent_oauth",
        "header_hook",
        "fetch", "fetch_easy", "fetch_pool", "fetch_state",
    },
}

# fetch.h knows no MCP: a server that needs keys from elsewhere is its client, too.
GUESTS = {("bearer_keys", "fetch")}


def check_between_transports(here, target):
    """None includes what is another's; what is shared includes nothing of either."""
    for name, stems in TRANSPORTS.items():
        if (here.stem, target.stem) in GUESTS:
            continue
        if target.stem in stems and here.stem not in stems:
            return f"{target.name} is {name}'s: transports may not include each other"
    return None


def check_system_include(path, name):
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


def self_check():
    wrong = [
        ("core/base/buf.c", '#include "wire/json_read.h"'),
        ("core/wire/jsonrpc.c", '  #  include "engine/engine.h"'),
        ("core/engine/dialect/plain.c", '#include "runtime/loop.h"'),
        ("core/engine/serving/task.c", '#include "store/store.h"'),
        ("core/store/memory.c", '#include "runtime/loop.h"'),
        ("core/runtime/loop.c", '#include "transport/transport.h"'),
        ("core/transport/pair.c", '#include "engine/engine.h"'),
        ("core/transport/stdio.c", '#include "transport/spawn.h"'),
        ("core/transport/http_ask.c", '#include "transport/http_conn.h"'),
        ("core/transport/link.c", '#include "transport/fetch.h"'),
        ("core/transport/stream.c", '#include "transport/relay.h"'),
        ("core/transport/link.c", "#include <curl/curl.h>"),
        ("core/transport/pair.c", '#include "api/guard.h"'),
        ("core/base/map.c", "#include <pthread.h>"),
        ("core/engine/serving/task.c", "#include <time.h>"),
        ("core/engine/serving/task.c", "#include <openssl/evp.h>"),
        ("core/runtime/loop.c", "#include <sqlite3.h>"),
        ("core/api/api_call.c", "#include <ev.h>"),
        ("core/base/buf.c", '#include "buf.h"'),
        ("core/examples/echo.c", '#include "base/buf.h"'),
        ("core/include/segue/segue.h", "#include <stdbool.h>"),
        ("core/api/api_call.c", '#include "segue/segue.h"'),
    ]
    right = [
        ("core/engine/dialect/plain.c", '#include "engine/engine.h"'),
        ("core/transport/pair.c", '#include "runtime/exchange.h"'),
        ("core/transport/spawn.c", '#include "transport/relay.h"'),
        ("core/transport/fds.c", '#include "transport/stream.h"'),
        ("core/transport/fetch_state.h", "#include <curl/curl.h>"),
        ("core/api/api_call.c", '#include "transport/transport.h"'),
        ("core/base/crypto.c", "#include <openssl/evp.h>"),
        ("core/engine/error.c", '#include "api/errors.def"'),
        ("core/base/buf.c", '/* no\n#include "api/guard.h"\n*/'),
    ]
    there = lambda path: path not in ("core/buf.h", "core/examples/base/buf.h")
    for path, text in wrong:
        lint.expect(check_text(path, text, there), f"{text} in {path} was let pass")
    for path, text in right:
        lint.expect(not check_text(path, text, there), f"{text} in {path} was refused")


def main():
    self_check()
    paths = lint.files(
        "core/**/*.[ch]", "tests/demo/*.[ch]", "bindings/**/*.[chi]")
    findings = []
    for path in paths:
        exists = lambda name: (lint.ROOT / name).is_file()
        findings += check_text(path.as_posix(), lint.read(path), exists)
    lint.finish(findings, f"{len(paths)} files")


main()
