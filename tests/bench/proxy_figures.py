"""The figures of segue-proxy beside those of other proxies: the same upstream, the same
load, one after another and again. The load is proxy_load.py.

- HTTP before a server on standard input and output; the call without a proxy is the one
  over pipes.
- Standard input and output before a server over HTTP; the call without a proxy is the one
  over HTTP.
- Standard input and output before one of the same kind: segue-proxy alone.
- HTTP before a server over HTTP: the call without a proxy is the one over HTTP. Beside
  segue-proxy only mcp-persist can do this, and it can do nothing else. It always has a
  store, and keeps in it what comes as an event stream, so it is compared with
  segue-proxy on SQLite.

What each adds to a call is the difference of the medians. The memory is that of the
proxy's processes without the upstreams. The machine decides the values, so a ratio is
segue-proxy compared with the other.
"""
import contextlib
import os
import shlex
import signal
import subprocess
import tempfile

import proxy_load as load
from figures import ROOT, alternate, column

SERVERS = os.path.join(ROOT, "build", "deps", "servers")
NPM = os.path.join(SERVERS, "node_modules", ".bin")
PIP1 = os.path.join(SERVERS, "venv1", "bin")
PERSIST = os.path.join(SERVERS, "venv-persist", "bin")
ROUNDS = 3
IN_FLIGHT = 32
SESSIONS, SESSIONS_SHORT = 1000, 100
# It starts a program for each session, so it has fewer, also where the others have more.
FEW_SESSIONS = {"supergateway"}
# with what a proxy is compared, if not with "segue-proxy"
BESIDE = {"mcp-persist": "segue-proxy sqlite"}


def fronts(segue, upstream, directory):
    """{name: command without its port}: HTTP before a program."""
    return {
        "segue-proxy": [segue, "--listen", "127.0.0.1:{port}", "--", *upstream],
        "segue-proxy sqlite": [segue, "--store", f"{directory}/tasks.db", "--listen",
                               "127.0.0.1:{port}", "--", *upstream],
        "supergateway": [f"{NPM}/supergateway", "--stdio", shlex.join(upstream),
                         "--outputTransport", "streamableHttp", "--stateful", "--port",
                         "{port}", "--logLevel", "none"],
        "mcp-proxy (npm)": [f"{NPM}/mcp-proxy", "--host", "127.0.0.1", "--port",
                            "{port}", "--server", "stream", "--", *upstream],
        "mcp-proxy (pip)": [f"{PIP1}/mcp-proxy", "--host", "127.0.0.1", "--port",
                            "{port}", "--", *upstream],
    }


def backs(segue, url, directory):
    """{name: command}: a program before a server over HTTP."""
    return {
        "segue-proxy": [segue, url],
        "segue-proxy sqlite": [segue, "--store", f"{directory}/backs.db", url],
        "supergateway": [f"{NPM}/supergateway", "--streamableHttp", url, "--logLevel",
                         "none"],
        "mcp-remote": [f"{NPM}/mcp-remote", url, "--allow-http", "--transport",
                       "http-only"],
        "mcp-proxy (pip)": [f"{PIP1}/mcp-proxy", "--transport", "streamablehttp", url],
    }


def gateways(segue, url, directory):
    """{name: command without its port}: HTTP before a server over HTTP."""
    return {
        "segue-proxy": [segue, "--listen", "127.0.0.1:{port}", url],
        "segue-proxy sqlite": [segue, "--store", f"{directory}/gateway.db", "--listen",
                               "127.0.0.1:{port}", url],
        "mcp-persist": [f"{PERSIST}/mcp-persist-proxy", "--upstream",
                        url.removesuffix("/mcp"), "--host", "127.0.0.1", "--port",
                        "{port}", "--backend", "sqlite", "--url",
                        f"{directory}/events.db"],
    }


@contextlib.contextmanager
def serving(command):
    """Starts a proxy over HTTP; yields (child, port)."""
    port = load.free_port()
    child = subprocess.Popen([word.replace("{port}", str(port)) for word in command],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        load.await_port(port, child)
        yield child, port
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def over_http(command, seconds):
    with serving(command) as (_, port):
        load.http_calls(port, 4, 0.5)
        one = load.http_calls(port, 1, seconds)
        many = load.http_calls(port, IN_FLIGHT, seconds)
    return {**one, "calls_per_s": many["calls_per_s"]}


def memory(command, sessions):
    """Returns the memory after the first session, and with all sessions open."""
    with serving(command) as (child, port):
        idle = load.resident_mib(child.pid, "bench_server")
        lines = [load.Line(port) for _ in range(sessions)]
        full = load.resident_mib(child.pid, "bench_server")
        for line in lines:
            line.close()
    return {"idle": idle, "full": full}


def over_pipes(command, seconds):
    server = load.Pipes(command)
    try:
        server.calls(4, 0.5)
        one, many = server.calls(1, seconds), server.calls(IN_FLIGHT, seconds)
    finally:
        server.close()
    return {**one, "calls_per_s": many["calls_per_s"]}


def title_of(kind, name):
    return f"proxy_{kind}_{name}".translate({ord(" "): "_", ord("("): "", ord(")"): ""})


def add(report, kind, name, said, ours, bare):
    """Adds the rows of a proxy; ours: what segue-proxy reached, None = it is that."""
    words = title_of(kind, name)
    for figure, title in (("p50_us", "added_p50"), ("p99_us", "added_p99")):
        added = [one - other for one, other in zip(column(said, figure),
                                                   column(bare, figure))]
        goal = ("value", "<=", 100) if title == "added_p50" and name == "segue-proxy" \
            else None
        report.add(f"{words}_{title}", added, "us", goal=goal)
    compare(report, f"{words}_rate", said, ours, "calls_per_s", "calls/s", (">=", 5))


def compare(report, title, said, ours, figure, unit, goal):
    """A row of another proxy has that proxy as the baseline of segue-proxy."""
    if ours is None:
        report.add(title, column(said, figure), unit)
    else:
        report.add(title, column(ours, figure), unit, column(said, figure),
                   ("ratio", *goal))


def ours_for(name):
    return BESIDE.get(name, "segue-proxy")


def measure_kind(report, kind, commands, bare, run):
    """Measures each proxy that can do it on this machine."""
    names = list(commands)
    usable = []
    for name in names:
        try:
            run(commands[name])
            usable.append(name)
        except (OSError, EOFError, RuntimeError) as error:
            print(f"proxy_{kind}: {name} cannot do it: {str(error)[:160]!r}", flush=True)
    results = alternate(ROUNDS, bare, *[lambda name=name: run(commands[name])
                                        for name in usable])
    said = dict(zip(["bare", *usable], results))
    for name in usable:
        ours = None if name.startswith("segue-proxy") else said[ours_for(name)]
        add(report, kind, name, said[name], ours, said["bare"])
    return usable


def measure_memory(report, kind, commands, usable, sessions):
    """Once for each proxy: the memory does not depend on the load of the machine."""
    known = {}
    for name in usable:
        count = min(sessions, SESSIONS_SHORT) if name in FEW_SESSIONS else sessions
        try:
            said = [memory(commands[name], count)]
        except (OSError, EOFError, RuntimeError) as error:
            print(f"proxy_{kind}: {name} does not have {count} sessions: "
                  f"{str(error)[:160]!r}", flush=True)
            continue
        known[name] = said
        title = title_of(kind, name)
        ours = None if name.startswith("segue-proxy") else known.get(ours_for(name))
        compare(report, f"{title}_idle", said, ours, "idle", "MiB", ("<=", 0.2))
        compare(report, f"{title}_{count}_sessions", said, ours, "full", "MiB",
                ("<=", 0.2))


def measure_before_http(report, segue, port, seconds, sessions):
    """Measures what stands before a server over HTTP."""
    url = f"http://127.0.0.1:{port}/mcp"

    def bare():
        return {**load.http_calls(port, 1, seconds), "calls_per_s": 1}

    with tempfile.TemporaryDirectory() as directory:
        measure_kind(report, "stdio", backs(segue, url, directory), bare,
                     lambda command: over_pipes(command, seconds))
        commands = gateways(segue, url, directory)
        usable = measure_kind(report, "http_http", commands, bare,
                              lambda command: over_http(command, seconds))
        measure_memory(report, "http_http", commands, usable, sessions)


def measure(programs, report, plan, proxy=None):
    segue = proxy or os.path.join(programs.directory, "..", "..", "proxy", "segue-proxy")
    if not os.path.isdir(NPM):
        raise SystemExit(f"{SERVERS} is empty: run .ci/setup-peers servers")
    seconds = plan.run_ms / 1000
    sessions = SESSIONS if plan.run_ms > 1000 else SESSIONS_SHORT
    upstream = [programs.path("bench_server")]
    print(f"load of the machine: {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        commands = fronts(segue, upstream, directory)
        usable = measure_kind(report, "http", commands,
                              lambda: over_pipes(upstream, seconds),
                              lambda command: over_http(command, seconds))
        measure_memory(report, "http", commands, usable, sessions)
    server = subprocess.Popen([programs.path("bench_http_server")], text=True,
                              stdout=subprocess.PIPE)
    try:
        port = int(server.stdout.readline())
        measure_before_http(report, segue, port, seconds, sessions)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    with tempfile.TemporaryDirectory() as directory:
        measure_kind(report, "stdio_stdio", {
            "segue-proxy": [segue, "--", *upstream],
            "segue-proxy sqlite": [segue, "--store", f"{directory}/pipes.db", "--",
                                   *upstream]},
            lambda: over_pipes(upstream, seconds),
            lambda command: over_pipes(command, seconds))
