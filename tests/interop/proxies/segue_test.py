"""Segue's server and client on two sides of nginx and HAProxy: events pass one by one,
comments keep a silent stream open, a stream that the proxy cuts is resumed, and HTTP/2
is used outside.

    segue_test.py BIN [NAME]

BIN holds fixture_server and watcher. One JSON line per check, as cells.py prints them.
With a NAME, "nginx" or "haproxy h2", only the checks run that begin with it. Standard
library only.
"""
import contextlib
import json
import re
import subprocess
import sys
import threading
import time

import fronts

RUN_SECONDS = 60
STEP_MS = 400
CUT_SECONDS = 2  # timeout of the variant "short"
PAUSE_MS = 2700  # longer than that
FAST_COMMENTS, SLOW_COMMENTS = 400, 30000
PROXIES = {"nginx": (fronts.start_nginx, fronts.NGINX_VARIANTS),
           "haproxy": (fronts.start_haproxy, fronts.HAPROXY_VARIANTS)}


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


@contextlib.contextmanager
def fixture_server(directory, *options):
    """Yields the port of a server, which must end without an error."""
    child = subprocess.Popen(
        [f"{directory}/fixture_server", "--http", "127.0.0.1", "--drain", "1000",
         *options], stdout=subprocess.PIPE, text=True)
    with child:
        try:
            yield int(re.search(r":(\d+)/", child.stdout.readline())[1])
        finally:
            child.terminate()
    expect(child.returncode == 0, f"the server ended with {child.returncode}")


class Watched:
    """The output of watcher: (seconds since its start, line)."""

    def __init__(self, command):
        begin = time.monotonic()
        self.lines = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as child:
            limit = threading.Timer(RUN_SECONDS, child.kill)
            limit.start()
            for line in child.stdout:
                self.lines.append((time.monotonic() - begin, line.strip()))
            limit.cancel()
        self.code = child.returncode

    def of(self, word):
        """Returns times and rests of the lines of request 0 with this beginning."""
        start = f"0 {word} "
        return [(at, line[len(start):]) for at, line in self.lines
                if line.startswith(start)]

    def rests(self, word):
        return [rest for _, rest in self.of(word)]

    def expect_good(self):
        expect(self.code == 0, f"watcher ended with {self.code}: {self.lines[-3:]}")

    def expect_spaced(self, word):
        """On a busy machine any event may be late, and close to the next. Events from a
        buffer would come all at once."""
        times = [at for at, _ in self.of(word)][1:]
        spread = times[-1] - times[0] if times else 0
        expect(spread > STEP_MS / 2000, f"{word}s arrive together: {times}")


def watch(place, front, *words, options=()):
    trust = ["--ca", front.ca] if front.ca else []
    return Watched([f"{place}/watcher", *trust, *options, front.url + "/mcp", *words])


def story(n, delay_ms):
    return "story", json.dumps({"n": n, "delayMs": delay_ms})


def expect_story(seen, n):
    seen.expect_good()
    expect(seen.rests("segment") == [f"{i} segment {i} of the story"
                                     for i in range(1, n + 1)],
           f"segments are {seen.rests('segment')}")
    result = json.loads(seen.rests("complete")[0].partition(" ")[2])
    texts = [block["text"] for block in result["content"]]
    expect(texts == [f"segment {i} of the story" for i in range(1, n + 1)],
           f"the result is {texts}")


def requests_in(front, version=r"\d"):
    """Returns how many requests have ended."""
    return len(re.findall(rf'"(?:POST|GET) \S*/mcp HTTP/{version}', front.logs()))


# ---- checks, called with (place, front, variant) ----


def a_task_streams_segment_by_segment(place, front, variant):
    seen = watch(place, front, *story(4, STEP_MS))
    expect_story(seen, 4)
    expect(seen.of("task"), "no task")
    seen.expect_spaced("segment")
    if variant == "h2":
        expect(requests_in(front, 2) >= 2, "no HTTP/2 outside")
        expect(requests_in(front, 1) == 0, "HTTP/1 outside")


def a_plain_call_streams_its_progress(place, front, _):
    words = "steps", json.dumps({"n": 4, "delayMs": STEP_MS})
    for era in ("modern", "legacy"):
        seen = watch(place, front, *words, options=["--plain", "1", "--era", era])
        seen.expect_good()
        expect(seen.rests("progress") == ["1", "2", "3", "4"],
               f"{era}: progress is {seen.rests('progress')}")
        seen.expect_spaced("progress")


def notifications_pass(place, front, _):
    options = ["--era", "legacy", "--stay", "500"]
    seen = watch(place, front, "toggle", "{}", options=options)
    seen.expect_good()
    expect("note notifications/tools/list_changed" in [line for _, line in seen.lines],
           f"no notification in {seen.lines}")


def a_large_result_passes(place, front, _):
    seen = watch(place, front, "big", '{"bytes":8388608}', options=["--plain", "1"])
    seen.expect_good()
    expect(len(seen.rests("complete")[0]) > 8388608, "not all came")


def comments_keep_silent_streams_open(place, front, _):
    seen = watch(place, front, *story(3, PAUSE_MS))
    expect_story(seen, 3)
    expect(requests_in(front) <= 4, f"{requests_in(front)} requests: it was cut")
    seen = watch(place, front, "slow_compute", '{"seconds":5}', options=["--plain", "1"])
    seen.expect_good()
    expect(seen.of("complete")[0][0] > CUT_SECONDS + 1, "it was not silent")


def a_task_stream_that_is_cut_is_resumed(place, front, _):
    seen = watch(place, front, *story(4, PAUSE_MS))
    expect_story(seen, 4)
    expect(requests_in(front) > 5, f"{requests_in(front)} requests: it was not cut")


def a_legacy_stream_that_is_cut_is_resumed(place, front, _):
    """The stream is resumed by GET with Last-Event-ID."""
    words = "steps", json.dumps({"n": 3, "delayMs": PAUSE_MS})
    seen = watch(place, front, *words, options=["--plain", "1", "--era", "legacy"])
    seen.expect_good()
    expect(seen.rests("progress") == ["1", "2", "3"],
           f"progress is {seen.rests('progress')}")
    expect(seen.rests("segment") == ["1 arrived"], f"{seen.rests('segment')}")
    expect(requests_in(front) > 4, f"{requests_in(front)} requests: it was not cut")


def a_certificate_of_nobody_is_refused(place, front, _):
    seen = Watched([f"{place}/watcher", front.url + "/mcp", "greet", "{}"])
    expect(seen.code != 0 and not any(line == "open" for _, line in seen.lines),
           f"it opened: {seen.lines}")
    expect(any("certificate" in line for _, line in seen.lines),
           f"nobody says why: {seen.lines}")


def checks_of(variant):
    """Returns the checks, each with the time between comments."""
    if variant == "short":
        yield comments_keep_silent_streams_open, FAST_COMMENTS
        yield a_task_stream_that_is_cut_is_resumed, SLOW_COMMENTS
        yield a_legacy_stream_that_is_cut_is_resumed, SLOW_COMMENTS
        return
    yield a_task_streams_segment_by_segment, SLOW_COMMENTS
    yield a_plain_call_streams_its_progress, SLOW_COMMENTS
    yield notifications_pass, SLOW_COMMENTS
    yield a_large_result_passes, SLOW_COMMENTS
    if variant == "h2":
        yield a_certificate_of_nobody_is_refused, SLOW_COMMENTS


class Output:
    failed = 0
    lock = threading.Lock()


def run_check(place, name, variant, check, comments_ms):
    line = {"what": f"{name} {variant}: {check.__name__.replace('_', ' ')}",
            "state": "green"}
    try:
        start, _ = PROXIES[name]
        with fixture_server(place, "--keepalive", str(comments_ms)) as port, \
                start(port, variant) as front:
            check(place, front, variant)
    except Exception as error:
        line.update(state="FAILED", reason=f"{type(error).__name__}: {error}"[:600])
        Output.failed += 1
    with Output.lock:
        print(json.dumps(line), flush=True)


def main():
    place, wanted = sys.argv[1], " ".join(sys.argv[2:])
    runs = []
    for name, (_, variants) in PROXIES.items():
        for variant in variants:
            if f"{name} {variant}".startswith(wanted):
                runs += [threading.Thread(target=run_check,
                                          args=(place, name, variant, *check))
                         for check in checks_of(variant)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()


if __name__ == "__main__":
    main()
