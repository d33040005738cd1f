"""Draws core/docs/images/demo.svg: the picture of the demo in README.md.

Usage: picture.py DEMO [OUT.svg]

DEMO is the program build/release/tests/demo/demo. picture.py runs DEMO once in a terminal
and writes down what DEMO prints, and when. The picture plays the run again: lines appear
at their times, and the bar grows as it did. Without animation the picture shows the end
of the run. The picture has a light and a dark form, and contains no script.
"""

import errno
import os
import pty
import re
import sys
import time
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from xml.etree import ElementTree

OUT = Path(__file__).resolve().parents[2] / "core" / "docs" / "images" / "demo.svg"
SVG = "{http://www.w3.org/2000/svg}"
BAR = re.compile(r" (\d+)/(\d+) +\d+/s\s*$")
EVENT = re.compile(r"^ *(\d+\.\d) s  (.) (.*)$")
COLOUR = re.compile(r"\033\[[0-9;]*[mK]")
PAUSE = 6.0  # seconds for which the end of the run stays
STEPS = 60  # the bar grows in at most 60 steps
MARGIN, LINE, COLUMN = 18, 19, 7.83  # COLUMN: the width of one character
KINDS = {"✖": "kill", "╱": "cut", "↻": "back"}
STYLE = """\
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
    white-space: pre; fill: #1f2328 }
.page { fill: #f6f8fa; stroke: #d1d9e0 }
.rest { fill: #d1d9e0 } .bar { fill: #0969da; transform-origin: left }
.kill { fill: #c21c2c } .cut { fill: #8a5a00 } .back { fill: #1a7f37 }
.dim { fill: #59636e } .end { font-weight: bold }
@media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .page { fill: #0d1117; stroke: #3d444d }
    .rest { fill: #3d444d } .bar { fill: #4493f8 }
    .kill { fill: #ff7b72 } .cut { fill: #e3b341 } .back { fill: #3fb950 }
    .dim { fill: #9198a1 }
}
"""


@dataclass
class Run:
    """What one run printed. at: seconds since its start."""

    head: list = field(default_factory=list)  # lines before the first event
    events: list = field(default_factory=list)  # (at, sign, text)
    bar: list = field(default_factory=list)  # (at, share of the segments)
    tail: list = field(default_factory=list)  # (at, line) after the last event


def record(command):
    """Runs the command in a terminal; returns [(seconds, text)] and its status."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1")
        os.execvp(command[0], command)
    begin, said = time.monotonic(), []
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError as error:  # the terminal of a process that ended
            if error.errno != errno.EIO:
                raise
            data = b""
        if not data:
            break
        said.append((time.monotonic() - begin, data))
    return said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def lines_of(said):
    """Returns (seconds, line) of each line and each drawing of the bar."""
    rest = b""
    for at, data in said:
        *lines, rest = re.split(rb"\r\n|\r|\n", rest + data)
        for line in lines:
            yield at, COLOUR.sub("", line.decode()).rstrip()


def understand(said):
    run = Run()
    for at, line in lines_of(said):
        if found := BAR.search(line):
            run.bar.append((at, int(found[1]) / int(found[2])))
        elif found := EVENT.match(line):
            run.events.append((at, found[2], f"{found[1]:>6} s  {found[2]} {found[3]}"))
        elif line.strip() and (run.events or run.bar):
            run.tail.append((at, line))
        elif line.strip():
            run.head.append(line)
    return run


def steps(bar):
    """Returns at most STEPS points of the bar, with its first and its last one."""
    every = max(1, len(bar) // STEPS)
    return [*bar[:-1:every], bar[-1]]


class Film:
    """Makes the animations. All have the same length, and begin again together."""

    def __init__(self, seconds):
        self.seconds = seconds + PAUSE
        self.rules = []

    def percent(self, at):
        return f"{100 * min(at / self.seconds, 1):.2f}%"

    def play(self, frames):
        name = f"a{len(self.rules)}"
        self.rules.append(f"@keyframes {name} {{ {frames} }}\n")
        return f'style="animation: {name} {self.seconds:.1f}s infinite"'

    def appear(self, at):
        """An element that appears at a time. Without animation it is there."""
        return self.play("0% { opacity: 0; animation-timing-function: step-end } "
                         f"{self.percent(at)}, 100% {{ opacity: 1 }}")

    def grow(self, bar):
        parts = [f"{self.percent(at)} {{ transform: scaleX({share:.3f}) }}"
                 for at, share in steps(bar)]
        return self.play(" ".join(["0% { transform: scaleX(0) }", *parts,
                                   "100% { transform: scaleX(1) }"]))


def text(row, line, kind="", more=""):
    more = f" {more}" if more else ""
    return (f'<text x="{MARGIN}" y="{MARGIN + LINE * row + 12}" class="{kind}"{more}>'
            f"{escape(line)}</text>\n")


def draw(run):
    film = Film(run.tail[-1][0])
    lines = [*run.head, *(line[-1] for line in run.events + run.tail)]
    whole = round(2 * MARGIN + COLUMN * max(map(len, lines)))
    body, row = [], 0
    for line in run.head:
        body.append(text(row, line, "dim"))
        row += 1
    for at, sign, line in run.events:
        body.append(text(row, line, KINDS.get(sign, ""), film.appear(at)))
        row += 1
    top, width = MARGIN + LINE * row + 5, whole - 2 * MARGIN
    size = f'width="{width}" height="4"'
    body.append(f'<g transform="translate({MARGIN} {top})"><rect {size} class="rest"/>'
                f'<rect {size} class="bar" {film.grow(run.bar)}/></g>\n')
    for at, line in run.tail:
        row += 1
        body.append(text(row, line, "end" if line == run.tail[-1][1] else "dim",
                         film.appear(at)))
    height = MARGIN * 2 + LINE * (row + 1)
    still = ("@media (prefers-reduced-motion: reduce) "
             "{ * { animation: none !important } }\n")
    title = escape(run.tail[-1][1])
    return (f'<svg xmlns="{SVG[1:-1]}" viewBox="0 0 {whole} {height}" '
            f'role="img" xml:space="preserve" aria-label="{title}">\n'
            f"<title>{title}</title>\n"
            f"<style>\n{STYLE}{''.join(film.rules)}{still}</style>\n"
            f'<rect x=".5" y=".5" width="{whole - 1}" height="{height - 1}" rx="8" '
            f'class="page"/>\n{"".join(body)}</svg>\n')


def main():
    said, status = record([sys.argv[1]])
    run = understand(said)
    if status or not run.bar or not run.tail[-1][1].startswith("demo ok: "):
        sys.exit(f"the demo ended with {status}: {run.tail[-1:]}")
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else OUT
    picture = draw(run)
    shown = [part.text for part in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    if shown != [*run.head, *(line[-1] for line in run.events + run.tail)]:
        sys.exit(f"the picture shows other lines than the demo printed: {shown}")
    out.write_text(picture, encoding="utf-8")
    print(f"{out}: {out.stat().st_size} bytes, {run.tail[-1][1]}")


if __name__ == "__main__":
    main()
