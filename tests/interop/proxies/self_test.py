"""Proves that the proxies of fronts.py do what tests of streams rely on: events pass
one by one, a silent stream is cut or left alone, HTTP/2 is used outside. curl is the
client. One line per check; the last line is "proxies: G green, F failed".

    python3 tests/interop/proxies/self_test.py [NAME]

With a NAME, "nginx" or "haproxy h2", only the checks run that begin with it. Standard
library only.
"""
import subprocess
import sys
import threading
import time

import fronts
import toy

RUN_SECONDS = 60
CUT_SECONDS = 2
QUIET_SECONDS = 3.5  # longer than that, shorter than any other limit
PROXIES = {"nginx": (fronts.start_nginx, fronts.NGINX_VARIANTS),
           "haproxy": (fronts.start_haproxy, fronts.HAPROXY_VARIANTS)}


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


class Answer:
    """The answer that curl got."""

    def __init__(self):
        self.events = []
        self.times = []
        self.version = None
        self.code = None
        self.seconds = None


def ask(url, ca, arrived):
    """Reads the stream of a POST as it comes; calls arrived(number) for each event."""
    answer = Answer()
    trust = ["--cacert", ca] if ca else []
    start = time.monotonic()
    # The environment may name a proxy, which must not be used.
    child = subprocess.Popen(
        ["curl", "--silent", "--no-buffer", "--noproxy", "*", "--http2", *trust,
         "--max-time", str(RUN_SECONDS), "--data", "{}",
         "--write-out", "\nversion %{http_version}\n", url],
        stdout=subprocess.PIPE, text=True)
    with child:
        for line in child.stdout:
            word, _, value = line.strip().partition(" ")
            if word == "data:":
                answer.events.append(int(value))
                answer.times.append(time.monotonic() - start)
                arrived(int(value))
            elif word == "version":
                answer.version = value
    answer.code = child.returncode
    answer.seconds = time.monotonic() - start
    return answer


def events_pass_one_by_one(front, upstream, variant):
    answer = ask(front.url + "/steps", front.ca, upstream.arrived.put)
    seen = upstream.done.get(timeout=RUN_SECONDS)
    expect(answer.code == 0, f"curl ended with {answer.code}")
    expect(answer.events == list(range(toy.EVENTS)), f"events are {answer.events}")
    expect(seen.late == 0, f"{seen.late} events arrived only with later ones")
    outside = "2" if variant == "h2" else "1.1"
    expect(answer.version == outside, f"HTTP/{answer.version} outside")
    inside = "HTTP/1.0" if variant == "http10" else "HTTP/1.1"
    expect(seen.line == f"POST /steps {inside}", f"{seen.line} inside")


def a_silent_stream_is_left_alone(front, upstream, _):
    answer = ask(front.url + "/silent", front.ca, lambda number: None)
    seen = upstream.done.get(timeout=RUN_SECONDS)
    expect(not seen.closed, "the proxy closed")
    expect(answer.code == 0, f"curl ended with {answer.code}")
    expect(answer.events == [0, 1], f"events are {answer.events}")
    expect(answer.times[1] > CUT_SECONDS + 1, f"silent for {answer.times[1]:.1f} s only")


def a_silent_stream_is_cut(front, upstream, _):
    answer = ask(front.url + "/silent", front.ca, lambda number: None)
    seen = upstream.done.get(timeout=RUN_SECONDS)
    expect(seen.closed, "the server does not see the cut")
    expect(answer.events == [0], f"events are {answer.events}")
    expect(answer.code == 18, f"curl ended with {answer.code}, not with a torn body")
    expect(answer.seconds > CUT_SECONDS - 0.2, f"cut after {answer.seconds:.1f} s")


def without_its_header_nginx_buffers(front, upstream, _):
    """Shows that the fault which the first check looks for can happen."""
    answer = ask(front.url + "/buffered", front.ca, upstream.arrived.put)
    seen = upstream.done.get(timeout=RUN_SECONDS)
    expect(answer.code == 0, f"curl ended with {answer.code}")
    expect(answer.events == list(range(toy.EVENTS)), f"events are {answer.events}")
    expect(seen.late == toy.EVENTS, f"only {seen.late} events were held back")


def checks_of(name, variant):
    cut = variant == "short"
    yield events_pass_one_by_one, toy.Toy
    yield ((a_silent_stream_is_cut if cut else a_silent_stream_is_left_alone),
           lambda: toy.Toy(quiet=toy.CLOSED_SECONDS if cut else QUIET_SECONDS))
    if variant == "http10":
        yield without_its_header_nginx_buffers, lambda: toy.Toy(step_seconds=0.2)


class Result:
    green = failed = 0
    lock = threading.Lock()


def run_check(name, variant, check, make_upstream):
    reason = ""
    try:
        start, _ = PROXIES[name]
        with make_upstream() as upstream, start(upstream.port, variant) as front:
            check(front, upstream, variant)
    except Exception as error:
        reason = f": {type(error).__name__}: {error}"
    with Result.lock:
        Result.failed += bool(reason)
        Result.green += not reason
        what = f"{name} {variant} | {check.__name__.replace('_', ' ')}"
        print(f"{what:<60} {'FAILED' if reason else 'green'}{reason}", flush=True)


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    runs = []
    for name, (_, variants) in PROXIES.items():
        for variant in variants:
            if f"{name} {variant}".startswith(wanted):
                runs += [threading.Thread(target=run_check, args=(name, variant, *check))
                         for check in checks_of(name, variant)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    print(f"proxies: {Result.green} green, {Result.failed} failed")
    return Result.failed > 0 or not runs


if __name__ == "__main__":
    sys.exit(main())
