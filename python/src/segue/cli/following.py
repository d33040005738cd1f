"""Follows one run of a tool to its end: segments, progress, result, and Ctrl-C.

A task is saved in the token file as soon as it is known, so that it can be resumed even
after the command was killed. When the run has ended, the task is removed from the file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Protocol

import msgspec

import segue
from segue.cli.codes import Exit
from segue.cli.running import Interrupted
from segue.cli.screen import Screen
from segue.cli.target import Era
from segue.tokens import SavedTask, Target, TokenFile

__all__ = ["Follower", "Run"]

# The interval in seconds at which the token is saved. If the command is killed,
# segments that it has shown since the last save may be shown again.
_SAVE_EVERY = 1.0


class Run(Protocol):
    """The common interface of streams and tasks."""

    @property
    def token(self) -> str | None: ...

    def __aiter__(self) -> AsyncIterator[segue.Segment]: ...

    def detach(self) -> str | None: ...

    async def cancel(self) -> None: ...


class Follower:
    """Shows one run of a tool. The caller sets `era` to the era of the session as soon as
    the era is known.

    Args:
        screen: The output on which the run is shown.
        tokens: The file in which the run's token is saved.
        target: The server, which is saved with the token.
        tool: The tool's name.
        is_streamed: True = show segments as they arrive; False = show the whole result.
        saved: The entry of a run that was saved before.
    """

    def __init__(
        self,
        screen: Screen,
        tokens: TokenFile,
        target: Target,
        tool: str,
        *,
        is_streamed: bool,
        saved: SavedTask | None = None,
    ) -> None:
        self._screen = screen
        self._tokens = tokens
        self._target = target
        self._tool = tool
        self._is_streamed = is_streamed
        self.era: Era = "auto"
        self._saved = saved
        self._saved_at = time.monotonic()
        self._shown = 0  # number of content blocks that were shown

    def on_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Shows progress; the ``on_progress`` callback of the run."""
        if not self._screen.as_json:
            self._screen.progress(done, total, message)
        elif self._is_streamed:
            self._screen.json(
                {
                    "event": "progress",
                    "progress": done,
                    "total": total,
                    "message": message,
                }
            )

    def on_log(self, message: segue.LogMessage) -> None:
        """Shows a log message; the ``on_log`` callback of the run."""
        data = message.data
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        self._screen.note(f"{message.level}: {text}")

    def on_task(self, run: Any) -> None:
        """Saves the task that the server made; the ``on_task`` callback of the run."""
        self.save(run, run.task_id if hasattr(run, "task_id") else run.id)

    def save(self, run: Run, task_id: str | None) -> None:
        """Saves the run's token. The first save makes a new entry, and later saves update
        this entry.
        """
        token = run.token
        if token is None or task_id is None:
            return
        self._saved_at = time.monotonic()
        if self._saved is not None:
            self._saved = self._tokens.update(
                self._saved.id, token=token, task_id=task_id
            )
            return
        self._saved = self._tokens.put(
            target=self._target,
            tool=self._tool,
            token=token,
            task_id=task_id,
            era=self.era,
        )
        if self._screen.as_json and self._is_streamed:
            self._screen.json({"event": "task", "id": self._saved.id, "taskId": task_id})

    async def follow(self, run: Run) -> Exit:
        """Shows the run until it ends.

        Raises:
            Interrupted: Ctrl-C was pressed. A durable task continues, and a plain call is
                cancelled.
        """
        try:
            async for segment in run:
                self._show(segment)
                self._save_now_and_then(run)
            result: segue.Result | None = await _result(run)
        except asyncio.CancelledError:
            self._screen.stop_progress()
            self._leave(run)
            raise
        except segue.ToolError as error:
            result = error.result
        except (segue.TaskLostError, segue.RequestCancelledError) as error:
            self._screen.stop_progress()
            is_lost = isinstance(error, segue.TaskLostError)
            self._note_end("lost" if is_lost else "cancelled")
            raise
        except segue.Error:
            self._screen.stop_progress()
            self._come_back("The task may still run on the server.")
            raise
        self._screen.stop_progress()
        self._forget()
        return self._finish(result)

    def detach(self, run: Run) -> SavedTask | None:
        """Stops following the run, which continues on the server.

        Returns:
            The saved task; None when the run cannot be resumed.
        """
        if self._saved is None:
            return None
        token = run.detach()
        if token is not None:
            self._saved = self._tokens.update(self._saved.id, token=token)
        return self._saved

    def _show(self, segment: segue.Segment) -> None:
        self._shown = segment.index + 1
        if not self._is_streamed:
            return
        block = msgspec.json.decode(segment.data)
        if self._screen.as_json:
            event: dict[str, Any] = {"event": "segment", "number": segment.number}
            if segment.replaces:
                event["index"], event["replaces"] = segment.index, True
            self._screen.json({**event, "content": block})
        else:
            self._screen.segment(segment.index, block, replaces=segment.replaces)

    def _save_now_and_then(self, run: Run) -> None:
        if self._saved is None or time.monotonic() - self._saved_at < _SAVE_EVERY:
            return
        self.save(run, self._saved.task_id)

    def _leave(self, run: Run) -> None:
        self._screen.end_segments()
        saved = self.detach(run)
        if saved is None:
            self._screen.note("Interrupted. The call is cancelled.")
            return
        is_child = not isinstance(self._target, str)
        self._come_back(
            "Interrupted. The task continues if the server has a persistent store."
            if is_child
            else "Interrupted. The task continues on the server."
        )
        if self._screen.as_json:
            self._screen.json({"event": "detached", "id": saved.id})
        raise Interrupted

    def _come_back(self, why: str) -> None:
        if self._saved is None:
            return
        self._screen.note(
            f"{why} To continue: segue task resume {self._saved.id}\n"
            f"To show it from its first segment: segue task watch {self._saved.id}\n"
            f"To cancel it: segue task cancel {self._saved.id}"
        )

    def _note_end(self, status: str) -> None:
        if self._saved is not None:
            self._tokens.update(self._saved.id, status=status)

    def _forget(self) -> None:
        if self._saved is not None:
            self._tokens.remove(self._saved.id)

    def _finish(self, result: segue.Result | None) -> Exit:
        if result is None:
            return Exit.OK
        wire = msgspec.json.decode(result.raw)
        if self._screen.as_json:
            self._screen.json(
                {"event": "result", "result": wire} if self._is_streamed else wire
            )
        else:
            self._screen.end_segments()
            blocks = wire.get("content") or []
            self._screen.blocks(blocks[self._shown if self._is_streamed else 0 :])
            if "structuredContent" in wire and not blocks:
                self._screen.pretty(wire["structuredContent"])
        if result.is_error:
            self._screen.note("The tool reported an error.")
            return Exit.TOOL
        return Exit.OK


async def _result(run: Any) -> segue.Result:
    """Returns the result of a stream that was read, or waits for the result of a task."""
    if isinstance(run, segue.Task):
        return await run.result()
    result: segue.Result = run.result
    return result
