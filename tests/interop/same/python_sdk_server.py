"""The travel desk on the official Python SDK. With PORT it serves HTTP there."""
import asyncio
import datetime
import enum
import os
from dataclasses import dataclass
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    Completion,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
)
from pydantic import BaseModel, Field

server = MCPServer("desk")
CITIES = ["Basel", "Berlin", "Bern"]


class Comfort(enum.Enum):
    SIMPLE = "simple"
    FINE = "fine"


@dataclass
class Offer:
    price: int
    leaves: datetime.date


class Sure(BaseModel):
    sure: bool


@server.tool()
def offer(
    nights: Annotated[int, Field(ge=1, le=30)],
    arrives: datetime.date,
    comfort: Comfort = Comfort.SIMPLE,
) -> Offer:
    """Makes an offer for a stay."""
    price = nights * (80 if comfort is Comfort.SIMPLE else 200)
    return Offer(price, arrives + datetime.timedelta(nights))


@server.tool(structured_output=False)
async def report(city: str, ctx: Context) -> str:
    """Reports on a city, day by day."""
    days = []
    for day in range(1, 4):
        await ctx.report_progress(day, 3, f"day {day}")
        await ctx.info(f"day {day} of {city}")
        days.append(f"Day {day} in {city}\n")
    return "".join(days)


@server.tool(structured_output=False)
async def book(city: str, ctx: Context) -> str | InputRequiredResult:
    """Books a trip, and asks before."""
    message = f"Book {city}?"
    if ctx.protocol_version != "2026-07-28":
        answer = await ctx.elicit(message, Sure)
        sure = answer.action == "accept" and answer.data.sure
    elif "sure" in (ctx.input_responses or {}):
        answer = ctx.input_responses["sure"]
        sure = answer.action == "accept" and answer.content["sure"]
    else:
        form = ElicitRequestFormParams(
            message=message, requested_schema=Sure.model_json_schema()
        )
        return InputRequiredResult(input_requests={"sure": ElicitRequest(params=form)})
    return f"booked: {city}" if sure else "not booked"


@server.tool(structured_output=False)
async def archive(pages: int, file: str) -> str:
    """Writes pages to a file, slowly."""
    for page in range(pages):
        await asyncio.sleep(0.1)
        with open(file, "a") as out:
            out.write(f"{page}\n")
    return f"{pages} pages"


@server.tool(structured_output=False)
def cancel(trip: str) -> str:
    """Cancels a trip."""
    raise ToolError(f"There is no trip {trip}")


@server.tool(structured_output=False)
def broken() -> str:
    """Has a defect."""
    raise RuntimeError("password is hunter2")


@server.resource("desk://policy", mime_type="text/plain")
def policy() -> str:
    return "Be kind."


@server.resource("desk://trips/{trip}", mime_type="application/json")
def trip(trip: str) -> dict[str, str]:
    return {"trip": trip}


@server.prompt()
def plan(city: str) -> str:
    """Plans a trip."""
    return f"Plan a trip to {city}."


@server.completion()
async def complete(ref, argument, context):
    return Completion(values=[city for city in CITIES if city.startswith(argument.value)])


if __name__ == "__main__":
    if "PORT" in os.environ:
        server.run("streamable-http", port=int(os.environ["PORT"]))
    else:
        server.run("stdio")
