#!/usr/bin/env python3
"""Segue's JSON reader compared with jansson, V8 and Python, over the fuzz corpus and
mutants of it.

When one of them differs from Segue on a document, a rule below must explain it, and the
rule must find its own evidence in the document. A difference without explanation fails
the run. So does a rule that a long run never needed, and a plain build of Segue that
differs from the SSE2 build. Accepted documents are compared by value, too: for Python
Segue's copy of it (ours.c) must mean the same as the document.

    run.py [--count N] [--seed S] [--keep]    N mutants, 100000 by default
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(TOP / "tests/fuzz"))
import corpus  # noqa: E402
BATCH = 20000
MAX_DEPTH = 512
LONG_RUN = 50000
FAULTS = ["ok", "syntax", "trailing", "utf8", "surrogate", "duplicate", "depth", "size",
          "nomem"]
JANSSON_OVERFLOW, JANSSON_NUL_IN_KEY = 15, 13


class Facts:
    """What Python makes of a document, and what it met on the way."""

    def __init__(self, document):
        self.passed = self.duplicate = self.constant = False
        self.numbers, self.nul_in_key, self.value = [], False, None
        try:
            text = document.decode("utf-8")
            self.value = json.loads(
                text, object_pairs_hook=self.on_object, parse_constant=self.on_constant,
                parse_int=self.on_number, parse_float=self.on_number)
            self.passed = True
        except (ValueError, RecursionError):
            pass

    def on_object(self, pairs):
        names = [name for name, _ in pairs]
        self.duplicate |= len(set(names)) < len(names)
        self.nul_in_key |= any("\0" in name for name in names)
        return ("object", pairs)

    def on_constant(self, name):
        self.constant = True
        return ("constant", name)

    def on_number(self, text):
        self.numbers.append(text)
        return ("number", text)


def has_lone_surrogate(value):
    if isinstance(value, str):
        return any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, (list, tuple)):
        return any(has_lone_surrogate(inner) for inner in value)
    return False


def is_deep(document):
    """Counts open brackets in another way than Segue: it cuts the strings out first."""
    now = most = 0
    for c in re.sub(rb'"(?:[^"\\]|\\.)*"', b"", document, flags=re.S):
        now += (c in b"[{") - (c in b"]}")
        most = max(most, now)
    return most > MAX_DEPTH


def overflows(text):
    if re.fullmatch(r"-?\d+", text):
        digits = text.lstrip("-").lstrip("0")
        return len(digits) > 19 or not -2**63 <= int(text) < 2**63
    return math.isinf(float(text))


# name -> (who differs, whether Segue is the one who refuses, a test whether the rule
# explains this document).
RULES = {
    "we refuse duplicate keys, Python keeps the last":
        ("python", True, lambda d, f, ours, them: ours == "duplicate" and f.duplicate),
    "we refuse duplicate keys, V8 keeps the last":
        ("v8", True, lambda d, f, ours, them: ours == "duplicate" and f.duplicate),
    "we refuse lone surrogates, Python keeps them":
        ("python", True,
         lambda d, f, ours, them: ours == "surrogate" and has_lone_surrogate(f.value)),
    "we refuse lone surrogates, V8 keeps them":
        ("v8", True,
         lambda d, f, ours, them: ours == "surrogate" and has_lone_surrogate(f.value)),
    "we refuse more depth than Python":
        ("python", True, lambda d, f, ours, them: ours == "depth" and is_deep(d)),
    "we refuse more depth than V8":
        ("v8", True, lambda d, f, ours, them: ours == "depth" and is_deep(d)),
    "we refuse more depth than jansson":
        ("jansson", True, lambda d, f, ours, them: ours == "depth" and is_deep(d)),
    "Python takes NaN and Infinity":
        ("python", True, lambda d, f, ours, them: ours == "syntax" and f.constant),
    "jansson refuses numbers it cannot hold":
        ("jansson", False, lambda d, f, ours, them:
         them == JANSSON_OVERFLOW and any(map(overflows, f.numbers))),
    "jansson swallows a NUL byte behind a number or a word":
        ("jansson", True, lambda d, f, ours, them:
         ours in ("syntax", "trailing") and
         Facts(re.sub(rb"([0-9a-z])\0", rb"\1", d)).passed != f.passed),
    "jansson refuses U+0000 in keys":
        ("jansson", False,
         lambda d, f, ours, them: them == JANSSON_NUL_IN_KEY and f.nul_in_key),
}


def explain(document, facts, who, ours, them):
    for name, (whose, we_refuse, applies) in RULES.items():
        if whose == who and we_refuse == (ours != "ok") and \
                applies(document, facts, ours, them):
            return name
    return None


def integer_of(text):
    """Returns the 64-bit integer that a number means, or None; it shifts the point in
    the text."""
    sign, whole, fraction, exponent = re.fullmatch(
        r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?", text).groups()
    digits, shift = whole + (fraction or ""), -len(fraction or "")
    stripped = digits.rstrip("0")
    if not stripped:
        return 0
    # int() of an endless exponent is slow and refused; sign and size are enough.
    exponent = exponent or "0"
    size = exponent.lstrip("+-").lstrip("0")
    shift += (int(size[:12] or "0") if len(size) <= 12 else 10**12) * \
        (-1 if exponent[0] == "-" else 1) + len(digits) - len(stripped)
    if shift < 0 or len(stripped.lstrip("0")) + shift > 19:
        return None
    value = int(sign + stripped) * 10**shift
    return value if -2**63 <= value < 2**63 else None


def same(value, told):
    """Returns whether Segue's copy (parsed by Python, numbers as text) is that
    value."""
    if isinstance(value, tuple) and value[0] == "number":
        if not isinstance(told, list) or len(told) != 3 or told[0] != value[1]:
            return False
        whole, double = integer_of(value[1]), float(value[1])
        told_whole = None if told[1] is None else int(told[1][1])
        told_double = None if told[2] is None else float(told[2][1])
        return told_whole == whole and (
            told_double is None if math.isinf(double)
            else told_double is not None
            and struct.pack("d", told_double) == struct.pack("d", double))
    if isinstance(value, tuple):
        return isinstance(told, tuple) and len(told[1]) == len(value[1]) and all(
            a[0] == b[0] and same(a[1], b[1]) for a, b in zip(value[1], told[1]))
    if isinstance(value, list):
        return isinstance(told, list) and len(told) == len(value) and \
            all(map(same, value, told))
    return type(value) is type(told) and value == told


TOKENS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"0", b"-", b"1", b".", b"e", b"E",
    b"+", b" ", b"\n", b"\t", b"\r", b"\0", b"\x1f", b"\x7f", b"null", b"true",
    b"false", b"NaN", b"-Infinity", b"\\u0000", b"\\u0061", b"\\ud83d\\ude00",
    b"\\ud800", b"\\udc00", b"\\uDBFF", b"\\n", b"\\/", b"\\u00", b'"a":1,', b'"a":',
    b'"\\u0061":0,', b'"\\u0000":1,', b"1e400", b"-1e999", b"9223372036854775808",
    b"1E-5", b"2.0", b"00", b"\xef\xbb\xbf", b"\xc3\xa4", b"\xe2\x82\xac",
    b"\xf0\x9f\x98\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xff", b"\x80",
    b"\xf4\x90\x80\x80", b"[[]]", b"{}", b'""', b"//", b"7\0", b"null\0",
]

SCALAR = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null', re.S)
VALUES = [
    b"0", b"-0", b"7", b"-1.50", b"2e0", b"20e-1", b"1e400", b"0.1", b"5e-324", b"null",
    b"123456789012345678901", b"-9223372036854775808", b"9.223372036854775807e18",
    b"true", b'""', b'"a"', b'"\\u0061"', b'"\\ud83d\\ude00"', b'"\\ud800"',
    b'"\\\\\\""', b"[]", b'"\\u0000"', b'"\xc3\xa4\xe2\x82\xac"', b'{"a":0,"b":0}',
    b"[[1,2],{}]", b"NaN",
]


def mutate_values(chance, document):
    """Replaces some values: many of these documents are accepted."""
    rate = chance.choice((1, 3, 10))

    def replace(found):
        return found[0] if chance.randrange(rate) else chance.choice(VALUES)

    return SCALAR.sub(replace, document)


def mutate(chance, document, other):
    """Changes some bytes: few of these documents are accepted."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        at = chance.randrange(len(document) + 1)
        to = min(len(document), at + chance.choice((1, 1, 2, 4, 16)))
        kind = chance.randrange(8)
        if kind == 0 and document:
            at = min(at, len(document) - 1)
            document = document[:at] + bytes([chance.randrange(256)]) + document[at + 1:]
        elif kind == 1:
            document = document[:at] + document[to:]
        elif kind in (2, 3):
            document = document[:at] + chance.choice(TOKENS) + document[at:]
        elif kind == 4:
            document = document[:at] + chance.choice(TOKENS) + document[to:]
        elif kind == 5:
            document = document[:to] + document[at:]
        elif kind == 6 and other:
            start = chance.randrange(len(other))
            document = document[:at] + other[start:start + chance.randrange(1, 40)] + \
                document[chance.choice((at, to)):]
        elif kind == 7 and document:
            at = min(at, len(document) - 1)
            flipped = document[at] ^ 1 << chance.randrange(8)
            document = document[:at] + bytes([flipped]) + document[at + 1:]
    return document


def wrap(chance, document):
    """Sometimes nests the document, repeats it in one object, or surrounds it with
    white space."""
    kind = chance.randrange(12)
    if kind == 0:
        return b"[" * (levels := chance.choice((1, 2, 510, 511, 512, 513))) + document + \
            b"]" * levels
    if kind == 1:
        return b'{"' + chance.choice((b"a", b"b", b"\\u0061")) + b'":' + document + \
            b',"a":' + chance.choice((b"0}", document + b"}"))
    return b" \n" + document + b"\t\r" if kind == 2 else document


def documents(count, seed):
    stored = list(corpus.read("json").values())
    yield from stored
    chance = random.Random(seed)
    small = [document for document in stored if len(document) < 1500]
    fine = [document for document in small if Facts(document).passed]
    for _ in range(count):
        if chance.randrange(3):
            document = mutate(chance, chance.choice(small + fine), chance.choice(small))
        else:
            document = mutate_values(chance, chance.choice(fine))
        yield wrap(chance, document)


def build(scratch):
    cc = shlex.split(os.environ.get("CC", "cc"))
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2"]
    flags += ["-I", TOP / "core/include", "-I", TOP / "core"]
    sources = sorted((TOP / "core/wire").glob("json_*.c"))
    sources += [TOP / f"core/base/{name}.c" for name in ("mem", "buf", "map")]
    for name, define in (("ours", []), ("plain", ["-DSGI_JSON_PLAIN"])):
        subprocess.run([*cc, *flags, *define, HERE / "ours.c", *sources, "-lm", "-o",
                        scratch / name], check=True)
    subprocess.run([*cc, "-std=c11", "-O2", HERE / "theirs.c", "-ljansson", "-o",
                    scratch / "theirs"], check=True)


def judge(scratch, batch):
    """Returns for each document: Segue's fault and copy, jansson's code, V8's
    verdict."""
    blob = b"".join(struct.pack("<I", len(document)) + document for document in batch)

    def run(*command):
        done = subprocess.run(command, input=blob, stdout=subprocess.PIPE, check=True)
        return done.stdout

    ours = run(scratch / "ours", str(MAX_DEPTH))
    if run(scratch / "plain", str(MAX_DEPTH)) != ours:
        sys.exit("json_oracle: the plain build of ours differs from the other")
    jansson = run(scratch / "theirs")
    v8 = run("node", HERE / "v8.mjs")
    if len(jansson) != 4 * len(batch) or len(v8) != len(batch):
        sys.exit("json_oracle: a judge lost documents")
    at = 0
    for i in range(len(batch)):
        fault, _, length = struct.unpack_from("<III", ours, at)
        at += 12 + length
        yield (FAULTS[fault], ours[at - length:at],
               struct.unpack_from("<I", jansson, 4 * i)[0], v8[i])
    if at != len(ours):
        sys.exit("json_oracle: we lost documents")


def compare(document, verdict, used):
    """Returns a list of complaints; counts the rules that it needed in `used`."""
    ours, told, jansson, v8 = verdict
    facts = Facts(document)
    complaints = []
    judges = [("python", None, facts.passed), ("jansson", jansson, jansson == 0),
              ("v8", v8, v8 == 0)]
    for who, them, passed in judges:
        if passed == (ours == "ok"):
            continue
        rule = explain(document, facts, who, ours, them)
        if rule:
            used[rule] += 1
        else:
            theirs = "pass" if passed else them or "no"
            complaints.append(f"{who} says {theirs}, we say {ours}")
    if ours == "ok" and facts.passed:
        redelivered = Facts(told)
        if not redelivered.passed or not same(facts.value, redelivered.value):
            complaints.append(f"passed, but was redelivered as {told[:300]!r}")
    return complaints


def self_check():
    """Checks that a wrong verdict or a wrong copy is noticed."""
    used = dict.fromkeys(RULES, 0)
    lies = [
        (b"[1]", ("syntax", b"", 0, 0)),
        (b"[1", ("ok", b"[1", 3, 2)),
        (b'{"a":1}', ("duplicate", b"", 0, 0)),
        (b'"\\ud83d\\ude00"', ("surrogate", b"", 0, 0)),
        (b"[[]]", ("depth", b"", 0, 0)),
        (b"[1e5]", ("ok", b'[["1e5",100000,1e5]]', JANSSON_OVERFLOW, 0)),
        (b"[1]", ("ok", b'[["1",2,1]]', 0, 0)),
        (b"[1]", ("ok", b'[["1",1,1.5]]', 0, 0)),
        (b"[1.5]", ("ok", b'[["1.5",1,1.5]]', 0, 0)),
        (b'"a"', ("ok", b'"b"', 0, 0)),
        (b'{"a":1}', ("ok", b'{"b":["1",1,1]}', 0, 0)),
        (b"[true]", ("ok", b"[1]", 0, 0)),
    ]
    for document, verdict in lies:
        if not compare(document, verdict, used):
            sys.exit(f"json_oracle: a lie about {document!r} was believed: {verdict}")
    if compare(b'{"a":[1,2.50,null]}',
               ("ok", b'{"a":[["1",1,1],["2.50",null,2.5],null]}', 0, 0), used):
        sys.exit("json_oracle: the truth was not believed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the programs")
    options = parser.parse_args()
    sys.setrecursionlimit(3000)
    self_check()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="json_oracle_"))
    used, total, passed, wrong = dict.fromkeys(RULES, 0), 0, 0, 0
    try:
        build(scratch)
        source = documents(options.count, options.seed)
        while batch := list(itertools.islice(source, BATCH)):
            for document, verdict in zip(batch, judge(scratch, batch)):
                total += 1
                passed += verdict[0] == "ok"
                for complaint in compare(document, verdict, used):
                    wrong += 1
                    if wrong <= 20:
                        print(f"{document[:300]!r}: {complaint}")
    finally:
        if options.keep:
            print(scratch)
        else:
            shutil.rmtree(scratch)
    for rule, times in used.items():
        print(f"{times:7} {rule}")
        if options.count >= LONG_RUN and not times:
            wrong += 1
            print("        a rule that nothing needed")
    print(f"{total} documents, {passed} passed, {wrong} differences unexplained")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
