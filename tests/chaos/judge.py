"""Judges the histories of a chaos run. It knows nothing of the library: only what the
parties wrote, as README.md lists it.

    judge.py DIRECTORY
    judge.py --self-test

Each file NAME.history is read. One line for each complaint, then the counts.
"""
import hashlib
import itertools
import os
import sys

MOST_TRIED = 4096  # combinations of segments that no view saw and that were made again
# A call whose server was killed is not run again, unless its tool can be. Its client is
# told so.
MAY_FAIL = {"K": "restart"}


class Call:
    """What is known of one call."""

    def __init__(self):
        self.mode = None
        self.count = 0
        self.seen = {}
        self.ends = []
        self.killed = False
        self.made = {}
        self.effects = 0
        self.moves = 0


class Judge:
    def __init__(self):
        self.calls = {}
        self.complaints = []
        self.killed = set()
        self.counts = {"calls": 0, "ok": 0, "failed": 0, "unfinished": 0, "segments": 0,
                       "moves": 0, "effects": 0, "unjudged": 0, "lost": 0, "doubled": 0,
                       "altered": 0}

    def call(self, name):
        return self.calls.setdefault(name, Call())

    def complain(self, name, text, what=None):
        """what: "lost", "doubled" or "altered", for complaints that are counted."""
        self.complaints.append(f"{name}: {text}")
        if what:
            self.counts[what] += 1

    def read(self, lines):
        for line in lines:
            words = line.split(" ")
            take = getattr(self, f"take_{words[0]}", None)
            if take:
                take(*words[1:])
            else:
                self.complain("history", f"a line is not understood: {line[:80]!r}")

    def take_made(self, name, number, digest):
        self.call(name).made.setdefault(int(number), []).append(digest)

    def take_effect(self, name):
        self.call(name).effects += 1

    def take_ask(self, name, mode, count):
        call = self.call(name)
        if call.mode:
            self.complain(name, "it was asked twice")
        call.mode, call.count = mode, int(count)

    def take_see(self, name, number, digest):
        call, number = self.call(name), int(number)
        if call.ends:
            self.complain(name, f"segment {number} after the end", "doubled")
        due = len(call.seen) + 1
        if number != due:
            self.complain(name, f"segment {number} behind {due - 1}",
                          "lost" if number > due else "doubled")
        call.seen.setdefault(number, digest)

    def take_move(self, name):
        self.call(name).moves += 1

    def take_end(self, name, status, *words):
        self.call(name).ends.append((status, words))

    def take_killed(self, name):
        self.killed.add(name)

    def take_done(self, name):
        pass

    def judge(self):
        for name, call in sorted(self.calls.items()):
            if not call.mode:
                self.complain(name, "nobody asked for it")
                continue
            self.counts["calls"] += 1
            self.counts["segments"] += len(call.seen)
            self.counts["moves"] += call.moves
            self.counts["effects"] += call.effects
            self.judge_segments(name, call)
            self.judge_ends(name, call)
        return self.complaints

    def judge_segments(self, name, call):
        for number, digest in call.seen.items():
            if digest not in call.made.get(number, []):
                self.complain(name, f"segment {number} was never made with these bytes",
                              "altered")
        if call.effects > 1:
            self.complain(name, f"{call.effects} effects", "doubled")

    def judge_ends(self, name, call):
        if not call.ends and name.rpartition(".")[0] in self.killed:
            self.counts["unfinished"] += 1
            return
        if len(call.ends) != 1:
            self.complain(name, f"{len(call.ends)} ends ({call.mode})",
                          "doubled" if call.ends else "lost")
            return
        status, words = call.ends[0]
        if status == "ok":
            self.counts["ok"] += 1
            self.judge_result(name, call, int(words[0]), words[1])
            return
        self.counts["failed"] += 1
        allowed = MAY_FAIL.get(call.mode)
        if not allowed or allowed not in " ".join(words).lower():
            self.complain(name, f"it failed ({call.mode}): {' '.join(words)}")

    def judge_result(self, name, call, count, fold):
        if count != call.count:
            self.complain(name, f"{count} blocks in the result, not {call.count}",
                          "lost" if count < call.count else "doubled")
            return
        if call.mode == "K":
            if not call.effects:
                self.complain(name, "no effect of a call that succeeded", "lost")
            return
        choices = [[call.seen[number]] if number in call.seen else
                   sorted(set(call.made.get(number, [])))
                   for number in range(1, count + 1)]
        tried = itertools.islice(itertools.product(*choices), MOST_TRIED + 1)
        for index, sums in enumerate(tried):
            if index == MOST_TRIED:
                self.counts["unjudged"] += 1
                return
            if hashlib.sha256("".join(sums).encode()).hexdigest()[:16] == fold:
                return
        self.complain(name, f"the result is not the fold of {len(call.seen)} segments "
                            f"that were seen ({call.mode})", "altered")


def judge_directory(directory):
    """Returns (complaints, counts)."""
    judge = Judge()
    for name in sorted(os.listdir(directory)):
        if name.endswith(".history"):
            with open(os.path.join(directory, name), encoding="utf-8",
                      errors="replace") as file:
                judge.read(file.read().splitlines())
    return judge.judge(), judge.counts


# ---- self test ----


def fold_of(*sums):
    return hashlib.sha256("".join(sums).encode()).hexdigest()[:16]


GOOD = ["ask c.0 E 2", "made c.0 1 aa", "made c.0 2 bb", "see c.0 1 aa", "move c.0",
        "made c.0 2 cc", "see c.0 2 bb", f"end c.0 ok 2 {fold_of('aa', 'bb')}",
        "ask c.1 K 1", "effect c.1", "end c.1 ok 1 x", "ask c.2 K 1",
        "end c.2 error TaskLostError Server restarted", "ask k.0 S 9", "killed k",
        "ask c.3 P 2", "made c.3 1 aa", "made c.3 2 bb", "made c.3 2 dd",
        f"end c.3 ok 2 {fold_of('aa', 'dd')}", "done c"]
WRONG = [("see c.0 2 bb", "see c.0 2 dd"), ("see c.0 2 bb", "see c.0 1 aa"),
         ("see c.0 1 aa", "see c.0 2 bb"), ("move c.0", "see c.0 1 aa"),
         (GOOD[7], "done c"), (GOOD[7], GOOD[7].replace("ok 2", "ok 1")),
         (GOOD[7], f"end c.0 ok 2 {fold_of('aa', 'cc')}"),
         (GOOD[7], "end c.0 error RemoteError x"), (GOOD[9], "done c"),
         (GOOD[10], "effect c.1"), ("killed k", "done c"), ("done c", "see c.0 3 aa"),
         ("done c", "end c.1 ok 1 x"), ("done c", "nonsense"), (GOOD[0], "done c")]


def self_test():
    judge = Judge()
    judge.read(GOOD)
    assert judge.judge() == [], judge.complaints
    for old, new in WRONG:
        judge = Judge()
        judge.read([new if line == old else line for line in GOOD])
        assert judge.judge(), f"let pass: {new} in place of {old}"
    judge = Judge()
    judge.read([*GOOD, "effect c.1"])
    assert judge.judge(), "two effects were let pass"


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    complaints, counts = judge_directory(sys.argv[1])
    for line in complaints:
        print(line)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
