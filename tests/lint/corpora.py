"""The corpora of the fuzz targets can be read, and each target has one.

A stored seed has the same bytes when it is unpacked (tests/fuzz/corpus.py).
"""

import pathlib
import sys
import tempfile

import lint

sys.dont_write_bytecode = True
sys.path.insert(0, str(lint.ROOT / "tests/fuzz"))
import corpus  # noqa: E402


def self_check():
    every = bytes(range(256)) * 2 + b"\\x00\\n\\"
    inputs = {"b": b"", "a.json": every, "0-1_2": b"a\r\n\tz \xc3\xa4"}
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        corpus.PLACE = place
        for name, data in inputs.items():
            (place / name).write_bytes(data)
        corpus.add("x", [place / name for name in inputs])
        first = corpus.path_of("x").read_bytes()
        corpus.add("x", [place / name for name in reversed(inputs)])
        lint.expect(corpus.path_of("x").read_bytes() == first, "it depends on the order")
        lint.expect(corpus.read("x") == inputs, "bytes are changed")
        corpus.unpack("x", place / "unpacked")
        found = {path.name: path.read_bytes() for path in (place / "unpacked").iterdir()}
        lint.expect(found == inputs, "bytes are changed when they are unpacked")
        for wrong in ("", "b 1\na 2\n", "a 1\na 2\n", "a\n", "a \\x0\n", "a \\x61\n",
                      "../a 1\n"):
            corpus.path_of("y").write_text(wrong, encoding="ascii")
            try:
                corpus.read("y")
            except (SystemExit, UnicodeDecodeError):
                continue
            lint.expect(False, f"let pass: {wrong!r}")


def main():
    place = corpus.PLACE
    self_check()
    corpus.PLACE = place
    findings, count = [], 0
    sources = lint.files("tests/fuzz/fuzz_*.c")
    targets = {path.stem.removeprefix("fuzz_") for path in sources}
    stored = {path.stem for path in lint.files("tests/fuzz/corpus/*")}
    for name in sorted(targets ^ stored):
        findings.append(f"tests/fuzz/corpus/{name}.seeds:1: a corpus without a target, "
                        "or a target without one")
    for name in sorted(targets & stored):
        try:
            count += len(corpus.read(name))
        except SystemExit as error:
            findings.append(str(error))
    lint.finish(findings, f"{count} inputs of {len(stored)} targets")


main()
