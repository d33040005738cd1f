"""Time lines: what two or three parties do, drawn as SVG and told in words.

A page has a line `<!-- timeline NAME -->`. NAME is an entry of timelines.json:

    title    what the picture shows
    parties  their names, from left to right
    steps    one after the other, each with one of
        from, to, text   a message; `lost` when it does not arrive
        at, text         what a party does alone; `event` is "cut", "killed", "store" or
                         "done"
        down, up         a party that is away from one step to another

The drawing is part of the page and uses its colours.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- timeline ([\w-]+) -->$", re.M)
DATA = Path(__file__).with_name("timelines.json")
WIDTH, STEP, TOP, MARGIN = 520, 42, 64, 84
CHARACTER = 6.6  # width of a character of a label
LINE = 15  # height of a line of a label
SIGNS = {"cut": "✂", "killed": "✕", "store": "▤", "done": "✓"}


def data() -> dict[str, Any]:
    return json.loads(DATA.read_text(encoding="utf-8"))


def wrapped(text: str, width: float) -> list[str]:
    """Breaks a label into lines that are not wider than `width`."""
    most = max(int(width / CHARACTER), 8)
    lines = [""]
    for word in text.split(" "):  # not at a no-break space
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


class Drawing:
    def __init__(self, name: str, line: dict[str, Any]) -> None:
        self.name, self.line = name, line
        self.parties: list[str] = line["parties"]
        space = (WIDTH - 2 * MARGIN) / (len(self.parties) - 1)
        self.x = {party: MARGIN + at * space for at, party in enumerate(self.parties)}
        self.space = space
        self.y = TOP
        self.shapes: list[str] = []
        self.down: dict[str, float] = {}
        self.away: list[tuple[str, float, float]] = []

    def text(self, x: float, y: float, lines: list[str], kind: str, anchor: str) -> None:
        for at, line in enumerate(lines):
            self.shapes.append(
                f'<text class="{kind}" x="{x:.0f}" y="{y + at * LINE:.0f}" '
                f'text-anchor="{anchor}">{html.escape(line)}</text>'
            )

    def message(self, step: dict[str, Any]) -> None:
        begin, end = self.x[step["from"]], self.x[step["to"]]
        lines = wrapped(step["text"], abs(end - begin) - 16)
        self.y += (len(lines) - 1) * LINE
        kind, stop = "message", end + (6 if end < begin else -6)
        if step.get("lost"):
            kind, stop = "message lost", (begin + end) / 2
            cross = stop
            self.shapes.append(
                f'<path class="cross" d="M{cross - 5:.0f} {self.y - 5}l10 10'
                f'M{cross + 5:.0f} {self.y - 5}l-10 10"/>'
            )
        self.shapes.append(f'<path class="{kind}" d="M{begin:.0f} {self.y}H{stop:.0f}"/>')
        if not step.get("lost"):
            back = 8 if end < begin else -8
            self.shapes.append(
                f'<path class="head" d="M{stop:.0f} {self.y}l{back} -4v8z"/>'
            )
        middle = (begin + end) / 2
        top = self.y - 8 - (len(lines) - 1) * LINE
        self.text(middle, top, lines, "label", "middle")

    def alone(self, step: dict[str, Any]) -> None:
        party = step["at"]
        x, event = self.x[party], step.get("event", "")
        is_last = party == self.parties[-1]
        if party == self.parties[0] or is_last:
            room = MARGIN - 20 if not step.get("wide") else self.space - 24
        else:
            room = self.space - 24
        inward = step.get("wide") or party not in (self.parties[0], self.parties[-1])
        if inward:
            side, anchor = (-1, "end") if is_last else (1, "start")
        else:
            side, anchor = (1, "start") if is_last else (-1, "end")
        lines = wrapped(step["text"], room)
        height = (len(lines) - 1) * LINE
        self.text(x + 14 * side, self.y + 4 - height / 2, lines, f"note {event}", anchor)
        self.shapes.append(
            f'<circle class="dot {event}" cx="{x:.0f}" cy="{self.y}" r="9"/>'
        )
        if event:
            self.text(x, self.y + 4, [SIGNS[event]], f"sign {event}", "middle")
        self.y += int(height / 2)

    def draw(self) -> str:
        for step in self.line["steps"]:
            if "from" in step:
                self.message(step)
            else:
                self.alone(step)
            if "down" in step:
                self.down[step["down"]] = self.y
            if "up" in step:
                self.away.append((step["up"], self.down.pop(step["up"]), self.y))
            self.y += STEP
        bottom = self.y
        for party, begin in self.down.items():
            self.away.append((party, begin, bottom - 18))
        return self.svg(bottom)

    def svg(self, bottom: int) -> str:
        lines = []
        for party, x in self.x.items():
            lines.append(f'<path class="life" d="M{x:.0f} 34V{bottom - 18}"/>')
        for party, begin, end in self.away:
            x = self.x[party]
            lines.append(f'<path class="gap" d="M{x:.0f} {begin}V{end}"/>')
            lines.append(f'<path class="away" d="M{x:.0f} {begin}V{end}"/>')
        heads = []
        for party, x in self.x.items():
            width = len(party) * 7.4 + 24
            heads.append(
                f'<rect class="party" x="{x - width / 2:.0f}" y="6" width="{width:.0f}" '
                f'height="28" rx="4"/><text class="name" x="{x:.0f}" y="25" '
                f'text-anchor="middle">{html.escape(party)}</text>'
            )
        title = html.escape(self.line["title"])
        return (
            f'<figure class="timeline"><svg viewBox="0 0 {WIDTH} {bottom}" role="img" '
            f'aria-labelledby="{self.name}-title"><title id="{self.name}-title">{title}'
            f"</title>{''.join(lines + heads + self.shapes)}</svg>"
            f"<figcaption>{title}</figcaption></figure>"
        )


def drawn(text: str) -> str:
    """Replaces the marks of a page by drawings."""
    known = data()
    return MARK.sub(lambda mark: Drawing(mark[1], known[mark[1]]).draw(), text)


def in_words(text: str) -> str:
    """Replaces the marks of a page by lists of the steps."""
    known = data()

    def told(mark: re.Match[str]) -> str:
        line = known[mark[1]]
        steps = [
            f"{step['from']} to {step['to']}: {step['text']}"
            + (" (lost)" if step.get("lost") else "")
            if "from" in step
            else f"{step['at']}: {step['text']}"
            for step in line["steps"]
        ]
        numbered = "\n".join(f"{at}. {step}" for at, step in enumerate(steps, 1))
        return f"{line['title']}:\n\n{numbered}"

    return MARK.sub(told, text)
