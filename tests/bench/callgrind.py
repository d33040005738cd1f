"""Counts the instructions of a program in valgrind, and shows in which room of the
library they are.

A count is the difference of two runs that differ in the number of calls only, so start,
warm-up and end fall out. It is that of user space: the kernel is not in it.
"""
import os
import re
import subprocess
import tempfile
from collections import Counter

CORE = re.compile(r"(?:^|/)core/(.+)/[^/]+$")
UNKNOWN = "unknown"
TESTS = re.compile(r"(?:^|/)tests/")
# functions of libc that make and free memory; the rest of libc mostly copies and finds
MEMORY = re.compile(r"^(_?_libc_)?(malloc|calloc|realloc|free|cfree|_int_\w+|sysmalloc|"
                    r"unlink_chunk\S*|malloc_consolidate|arena_get\S*|tcache_\w+)")
LIBRARIES = (("libwebsockets", "lws"), ("libev", "libev"), ("libc.so", "libc"),
             ("libc-", "libc"), ("libcurl", "curl"), ("libsqlite", "sqlite"),
             ("libcrypto", "crypto"), ("libssl", "crypto"), ("ld-linux", "libc"))


def room_of(binary, path, function):
    """binary: the file that has the code; path: that of its source, if it is known."""
    ours = CORE.search(path)
    if ours:
        parts = ours[1].split("/")
        return "/".join(parts[:2]) if parts[0] == "engine" else parts[0]
    if TESTS.search(path):
        return "the program"
    for mark, name in LIBRARIES:
        if mark in os.path.basename(binary):
            return "malloc" if name == "libc" and MEMORY.match(function) else name
    return UNKNOWN


def read_profile(path):
    """Returns the cost of each (binary, source file, function) itself, calls left out."""
    names = {}
    at = {"ob": "", "fl": "", "fn": ""}
    costs = Counter()
    skip = False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = re.match(r"(c?ob|c?fl|c?fi|c?fe|c?fn)=\((\d+)\)(?: (.*))?$", line)
            if found:
                kind, number, name = found.groups()
                space = "fl" if kind[-2:] in ("fl", "fi", "fe") else kind[-2:]
                if name is not None:
                    names[space, number] = name
                if kind[0] != "c":
                    at[space] = names[space, number]
            elif line.startswith("calls="):
                skip = True  # the next line is the cost of what is called
            elif line[0].isdigit() or line[0] in "+-*":
                if not skip:
                    costs[at["ob"], at["fl"], at["fn"]] += int(line.split()[1])
                skip = False
    return costs


class Profile:
    """What one unit of work costs."""

    def __init__(self, few, many, units):
        many.subtract(few)
        self.functions = {key: cost / units for key, cost in many.items() if cost}
        self.total = sum(self.functions.values())

        self.names = self.rooms_of_functions()

    def rooms_of_functions(self):
        """The room of each function of the program. The compiler gives some instructions
        of a function no line; they count to the room of its other lines."""
        costs = {}
        for (binary, path, function), cost in self.functions.items():
            room = room_of(binary, path, function)
            if room != UNKNOWN:
                costs.setdefault((binary, function), Counter())[room] += cost
        return {key: rooms.most_common(1)[0][0] for key, rooms in costs.items()}

    def room(self, binary, path, function):
        room = room_of(binary, path, function)
        return self.names.get((binary, function), room) if room == UNKNOWN else room

    def rooms(self):
        rooms = Counter()
        for key, cost in self.functions.items():
            rooms[self.room(*key)] += cost
        return rooms

    def largest(self, count):
        by_name = Counter()
        for key, cost in self.functions.items():
            by_name[self.room(*key), key[2]] += cost
        return by_name.most_common(count)


def profile(work, few, many):
    """work(prefix, count): runs `count` units of work in a program whose command line
    begins with `prefix`, and waits for its end."""
    costs = []
    for count in (few, many):
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "callgrind.out")
            work(["valgrind", "--tool=callgrind", "-q", f"--callgrind-out-file={out}",
                  "--dump-line=yes"], count)
            costs.append(read_profile(out))
    return Profile(*costs, many - few)


def terminate(process):
    """Ends a program under valgrind, which then writes its counts."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
