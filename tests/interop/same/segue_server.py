"""The travel desk on Segue for Python. With PORT it serves HTTP there."""
import asyncio
import datetime
import enum
import os
from dataclasses import dataclass
from typing import Annotated

import msgspec
import segue

server = segue.Server("desk")
CITIES = ["Basel", "Berlin", "Bern"]


class Comfort(enum.Enum):
    SIMPLE = "simple"
    FINE = "fine"


@dataclass
class Offer:
    price: int
    leaves: datetime.date


@server.tool
def offer(
    nights: Annotated[int, msgspec.Meta(ge=1, le=30)],
    arrives: datetime.date,
    comfort: Comfort = Comfort.SIMPLE,
) -> Offer:
    """Makes an offer for a stay."""
    price = nights * (80 if comfort is Comfort.SIMPLE else 200)
    return Offer(price, arrives + datetime.timedelta(nights))


@server.tool
async def report(city: str, ctx: segue.Context):
    """Reports on a city, day by day."""
    for day in range(1, 4):
        ctx.progress(day, 3, f"day {day}")
        ctx.log(f"day {day} of {city}")
        yield f"Day {day} in {city}\n"


@server.tool
async def book(city: str, ctx: segue.Context) -> str:
    """Books a trip, and asks before."""
    if not await ctx.ask(f"Book {city}?", bool):
        return "not booked"
    return f"booked: {city}"


@server.tool(task="may", promote_after=0, restartable=True)
async def archive(pages: int, file: str, ctx: segue.Context) -> str:
    """Writes pages to a file, slowly, and goes on after a crash."""
    done = (ctx.resumed and ctx.resumed.data) or 0
    for page in range(done, pages):
        await asyncio.sleep(0.1)
        with open(file, "a") as out:
            out.write(f"{page}\n")
        await ctx.checkpoint(page + 1)
    return f"{pages} pages"


@server.tool
def cancel(trip: str) -> str:
    """Cancels a trip."""
    raise segue.ToolError(f"There is no trip {trip}")


@server.tool
def broken() -> str:
    """Has a defect."""
    raise RuntimeError("password is hunter2")


@server.resource("desk://policy", mime_type="text/plain")
def policy() -> str:
    return "Be kind."


@server.resource("desk://trips/{trip}")
def trip(trip: str) -> dict[str, str]:
    return {"trip": trip}


@server.prompt
def plan(city: Annotated[str, segue.Complete(CITIES)]) -> str:
    """Plans a trip."""
    return f"Plan a trip to {city}."


if __name__ == "__main__":
    server.run(os.environ.get("PORT"), store=os.environ.get("STORE"))
