"""Writes the command's output: results to standard output, all else to standard error.

With ``--json`` standard output has only JSON: one value per line for streamed output,
otherwise one value. Without ``--json`` text is written unchanged, so that it can be
piped. rich is loaded only when it is needed.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from segue import errors
from segue.cli.codes import AlreadyTold

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from segue import Reconnect

__all__ = ["Screen"]


class Screen:
    """Output of one command.

    Args:
        as_json: True = JSON on standard output instead of text for people.
    """

    def __init__(self, *, as_json: bool = False, is_quiet: bool = False) -> None:
        self.as_json = as_json
        self.is_quiet = is_quiet
        self._console: Console | None = None
        self._progress: Progress | None = None
        self._bar: TaskID | None = None
        # index of the text block whose line is not ended yet; None = no such line
        self._place: int | None = None

    @property
    def notes(self) -> Console:
        """The console for standard error."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(stderr=True, highlight=False)
        return self._console

    def note(self, text: str) -> None:
        """Shows a line on standard error. With `is_quiet`, does nothing."""
        if not self.is_quiet:
            self.notes.print(text, style="dim", markup=False, soft_wrap=True)

    def reconnect(self, told: Reconnect) -> None:
        """Reports that the server was lost and the client will try again."""
        self.end_segments()
        self.note(
            f"the connection to the server is lost ({told.reason}): "
            f"attempt {told.attempt} to reach it "
            f"again in {told.delay:.1f} s"
        )

    def error(self, error: BaseException) -> None:
        """Shows why the command failed; with --json also on standard output."""
        self.stop_progress()
        self.end_segments()
        # str() of a KeyError puts the message in quotes
        text = str(error.args[0]) if isinstance(error, KeyError) else str(error)
        text = text or type(error).__name__
        if isinstance(error, errors.UnauthorizedError):
            text += " (--login logs in with a browser, --bearer gives a token)"
        if not isinstance(error, AlreadyTold):
            self.notes.print(f"segue: {text}", style="red", markup=False, soft_wrap=True)
        if self.as_json:
            told: dict[str, Any] = {"message": text}
            if isinstance(error, errors.Error):
                told["status"] = error.name
                if error.code:
                    told["code"] = error.code
                if error.data is not None:
                    told["data"] = error.data
            self.json({"error": told})

    def json(self, value: Any) -> None:
        """Writes a JSON value on one line of standard output."""
        print(json.dumps(value, ensure_ascii=False, separators=(",", ":")), flush=True)

    def text(self, text: str) -> None:
        """Writes text to standard output and ends its line."""
        print(text, end="" if text.endswith("\n") else "\n", flush=True)

    def segment(self, place: int, block: Mapping[str, Any], *, replaces: bool) -> None:
        """Shows one segment as text. A text of the same block continues the open line."""
        if replaces:
            self.end_segments()
            self.note("(this replaces the output before it)")
        elif place != self._place:
            self.end_segments()
        text = describe(block)
        print(text, end="", flush=True)
        if text:
            self._place = None if text.endswith("\n") else place

    def end_segments(self) -> None:
        """Ends the open line of a text."""
        if self._place is not None:
            print(flush=True)
            self._place = None

    def pretty(self, value: Any) -> None:
        """Writes a JSON value with indentation, for people."""
        print(json.dumps(value, ensure_ascii=False, indent=2), flush=True)

    def blocks(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Shows content blocks as text, for people."""
        for block in blocks:
            self.text(describe(block))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Shows a table. If standard output is not a terminal, each row is a line with a
        tab between its cells.
        """
        if not sys.stdout.isatty():
            for row in rows:
                print("\t".join(cell.replace("\n", " ") for cell in row), flush=True)
            return
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(_escape(cell) for cell in row))
        Console(highlight=False).print(table)

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Shows the progress as a bar, on a terminal only."""
        if self.is_quiet or not sys.stderr.isatty():
            return
        if self._progress is None:
            from rich import progress

            self._progress = progress.Progress(
                progress.SpinnerColumn(),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("{task.description}"),
                console=self.notes,
                transient=True,
                # On a terminal, standard output is redirected so that the text of the
                # result is printed above the bar.
                redirect_stdout=sys.stdout.isatty(),
            )
            self._progress.start()
            self._bar = self._progress.add_task("", total=total)
        if self._bar is not None:
            self._progress.update(
                self._bar, completed=done, total=total, description=_escape(message or "")
            )

    def stop_progress(self) -> None:
        """Removes the progress bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            self._bar = None


def describe(block: Mapping[str, Any]) -> str:
    """Returns a text for people that shows one content block."""
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in ("image", "audio"):
        return (
            f"[{kind} {block.get('mimeType', '')}, {_size(block.get('data', ''))} bytes]"
        )
    if kind == "resource_link":
        return f"[{block.get('name', 'resource')}: {block.get('uri', '')}]"
    if kind == "resource":
        resource = block.get("resource", {})
        if isinstance(resource, Mapping):
            return describe_resource(resource)
    return json.dumps(dict(block), ensure_ascii=False)


def describe_resource(contents: Mapping[str, Any]) -> str:
    """Returns a text for people that shows the contents of a resource."""
    if "text" in contents:
        return str(contents["text"])
    size = _size(contents.get("blob", ""))
    return f"[{contents.get('uri', '')} {contents.get('mimeType', '')}, {size} bytes]"


def _size(data: Any) -> int:
    try:
        return len(base64.b64decode(str(data), validate=True))
    except ValueError:
        return 0


def _escape(text: str) -> str:
    return text.replace("[", r"\[")
