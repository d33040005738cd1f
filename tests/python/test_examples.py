"""The programs of python/examples run as their first lines say, and print what is in
core/examples/expected, where the examples of the other languages find it, too."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import segue

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "python" / "examples").glob("*.py"))
EXPECTED = ROOT / "core" / "examples" / "expected"
SECONDS = 120


def test_there_are_ten() -> None:
    names = {path.stem for path in EXAMPLES}
    assert len(names) == 10
    assert names == {path.stem for path in EXPECTED.glob("*.txt")}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_prints_what_is_expected(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-B", str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (EXPECTED / f"{path.stem}.txt").read_text()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_its_first_lines_say_how_to_run_it(path: Path) -> None:
    assert f"    python {path.name} " in path.read_text().split('"""')[1]


def test_the_chat_reads_its_input() -> None:
    done = subprocess.run(
        [sys.executable, "-B", str(ROOT / "python" / "examples" / "chat.py"), "-"],
        input="A question: what does a quartz clock count?\n",
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.stdout.splitlines()[:3] == [
        "you: A question: what does a quartz clock count?",
        "model: I call ask.",
        "  A quartz clock counts the vibrations of a crystal.",
    ]


def test_a_client_that_cancels_ends_all_of_a_step(tmp_path: Path) -> None:
    fifo, long = tmp_path / "fifo", tmp_path / "long_build.py"
    os.mkfifo(fifo)
    step = f"exec 9>{fifo}; echo begun; sleep 1000 & wait"
    text = (ROOT / "python" / "examples" / "build.py").read_text()
    text = re.sub(r'"compile": .*', f'"compile": "{step}",', text)
    assert step in text
    long.write_text(text)

    async def cancel() -> None:
        # ends when no process of the step has the file any more
        reader = await asyncio.create_subprocess_exec("cat", str(fifo))
        async with segue.connect([sys.executable, "-B", str(long), "serve"]) as session:
            async with session.stream("run_build", steps=["compile"]) as stream:
                async for segment in stream:
                    assert segment.text == "[compile] begun\n"
                    await stream.cancel()
                    break
            await reader.wait()
            after = await session.call("run_build", steps=["test"])
            assert "12 tests passed" in after.text

    asyncio.run(asyncio.wait_for(cancel(), SECONDS))
