"""Segue's client with a travel desk: what the official clients do not have.  kept.py
COMMAND..."""
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import anyio

import segue
from cells import Cells, Missing, equal, run_cells
from desk import Desk

PAGES = 10
cells = Cells()
place = Path(tempfile.mkdtemp(dir=os.environ.get("OUT")))


session: segue.Session
desk = Desk(sys.argv[1:], STORE=str(place / "tasks.db"))


@cells.add("the report comes in pieces")
async def _():
    pieces = [piece.text async for piece in session.stream("report", city="Bern")]
    equal("".join(pieces), "Day 1 in Bern\nDay 2 in Bern\nDay 3 in Bern\n")
    if len(pieces) == 1:
        raise Missing("the report comes whole")


@cells.add("a task goes on after a crash")
async def _():
    file = place / "pages"
    task = await session.start("archive", pages=PAGES, file=str(file))
    if task.task_id is None:
        await task.cancel()
        raise Missing("there are no tasks")
    while not file.exists() or len(file.read_text().split()) < 3:
        await anyio.sleep(0.01)
    desk.kill()
    desk.start()
    try:
        result = await task.result()
    except segue.Error:
        raise Missing("the crash ends the task") from None
    equal(result.text, f"{PAGES} pages")
    pages = [int(page) for page in file.read_text().split()]
    equal(sorted(set(pages)), list(range(PAGES)), "the pages")
    # The page after the last checkpoint may have been written before the crash.
    equal(len(pages) <= PAGES + 1, True, f"pages are written once: {pages}")


async def main():
    global session
    async with segue.connect(desk.url, proxy="") as session:
        await run_cells(cells, 60)


try:
    desk.wait_up()
    anyio.run(main)
finally:
    desk.kill()
