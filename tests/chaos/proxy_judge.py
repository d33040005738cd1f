"""The judge of proxy.py. It reads what the upstreams and the client wrote down."""
import dataclasses
import sys
import tempfile


@dataclasses.dataclass
class Kill:
    """An instant at which a proxy, or its upstream, was killed."""
    at: float
    proxy: int = 0  # its number
    is_final: bool = False  # no later call reaches what was killed


class Judge:
    """Reads the histories; complaints and counts are the judgement."""

    def __init__(self, directory, kills, proxies):
        self.kills = kills
        self.effects, self.asked, self.ends = {}, {}, {}
        # for each proxy, the instants at which its upstream was started
        self.starts = [[] for _ in range(proxies)]
        self.complaints = []
        self.counts = {"calls": 0, "lost": 0, "doubled": 0, "effects doubled": 0,
                       "unknown": 0, "unavailable": 0}
        self.read(directory)

    def read(self, directory):
        for number, starts in enumerate(self.starts):
            with open(f"{directory}/upstream-{number}", encoding="utf-8") as file:
                for line in file:
                    word, key, *rest = line.split()
                    if word == "effect":
                        self.effects[key] = self.effects.get(key, 0) + 1
                    else:
                        starts.append(float(rest[0]))
        with open(f"{directory}/client", encoding="utf-8") as file:
            for line in file:
                word, key, *rest = line.split()
                if word == "ask":
                    self.asked[key] = (rest[0], float(rest[1]))
                else:
                    self.ends.setdefault(key, []).append((*rest[:2], float(rest[2])))

    def complain(self, key, text, what=None):
        self.complaints.append(f"{key}: {text}")
        if what:
            self.counts[what] += 1

    def judge(self):
        for key, (tool, begin) in self.asked.items():
            self.counts["calls"] += 1
            ends = self.ends.get(key, [])
            if len(ends) != 1:
                self.complain(key, f"it has {len(ends)} ends",
                              "doubled" if ends else "lost")
                continue
            if tool == "once" and self.effects.get(key, 0) > 1:
                self.complain(key, f"it took effect {self.effects[key]} times",
                              "effects doubled")
            getattr(self, f"end_{ends[0][0]}", self.end_otherwise)(
                key, tool, begin, *ends[0])

    def end_ok(self, key, _tool, _begin, _kind, text, _end):
        if text != key or not self.effects.get(key):
            self.complain(key, f"a false success: {text}", "lost")

    def end_outcome_unknown(self, key, tool, begin, _kind, text, end):
        self.counts["unknown"] += 1
        if tool != "once":
            self.complain(key, f"{tool} was not sent again: {text}", "lost")
        elif not any(kill.at <= end and begin <= self.until(kill) for kill in self.kills):
            self.complain(key, f"unknown, but nothing was killed: {text}", "lost")

    def until(self, kill):
        """Returns until when a call may still go to what was killed: to an upstream until
        the next one is started. Nobody reaches a dead proxy."""
        if kill.is_final:
            return kill.at
        return min((start for start in self.starts[kill.proxy] if start > kill.at),
                   default=float("inf"))

    def end_upstream_unavailable(self, key, tool, _begin, _kind, text, _end):
        self.counts["unavailable"] += 1
        if self.effects.get(key):
            self.complain(key, f"it took effect, but ended with {text}", "lost")

    def end_otherwise(self, key, tool, _begin, kind, text, _end):
        self.complain(key, f"{tool} ended with {kind}: {text}", "lost")


# ---- the self-test ----

STORY = {
    "upstream-0": ["start 7 1.0", "effect a", "effect b", "start 8 3.0"],
    "upstream-1": ["start 9 1.0", "effect c"],
    "client": ["ask a once 1.5", "end a ok a 1.6", "ask b once 1.7",
               "end b outcome_unknown - 2.5", "ask c again 1.8", "end c ok c 4.0",
               "ask d once 2.4", "end d upstream_unavailable - 2.6"]}
WRONG = {  # what is added to the story -> the count that must be 1
    ("upstream-1", "effect a"): "effects doubled",
    ("client", "end a ok a 1.7"): "doubled",
    ("client", "ask e once 1.0"): "lost",
    ("upstream-0", "effect d"): "lost",
    ("client", "ask f once 5.0\nend f outcome_unknown - 5.1"): "lost",
    ("client", "ask f again 1.9\nend f outcome_unknown - 2.1"): "lost",
    ("client", "ask f once 1.9\nend f ok f 2.1"): "lost",
    ("client", "ask f once 1.9\nend f error - 2.1"): "lost"}


def judge_story(name=None, line=None):
    with tempfile.TemporaryDirectory() as directory:
        for file, lines in STORY.items():
            with open(f"{directory}/{file}", "w", encoding="utf-8") as out:
                out.write("\n".join(lines + [line] * (file == name)) + "\n")
        judge = Judge(directory, [Kill(2.0)], 2)
        judge.judge()
        return judge


def self_test():
    assert judge_story().complaints == [], judge_story().complaints
    for (name, line), what in WRONG.items():
        judge = judge_story(name, line)
        assert judge.counts[what] == 1, (line, judge.counts)
        assert len(judge.complaints) == 1, (line, judge.complaints)


if __name__ == "__main__":
    self_test()
    sys.exit(print("the judge sees each defect"))
