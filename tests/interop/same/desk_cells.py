"""What clients in Python do with a travel desk, whatever their library. client.py names
the clients."""
import json

from cells import Cells, Missing, equal, until

REPORT = "Day 1 in Bern\nDay 2 in Bern\nDay 3 in Bern\n"
GIVEN = {"nights": 2, "arrives": "2026-12-01", "comfort": "fine"}

# What the TypeScript SDK's handler of HTTP does without more code.
NO_SESSIONS = "over HTTP in 2025-11-25 only with sessions of one's own"


class Answer:
    """The result of a tool, or the error in its place."""

    def __init__(self, text, structured=None, is_error=False):
        self.text, self.structured, self.is_error = text, structured, is_error


def desk_cells(client):
    """client: an object with the methods that client.py defines."""
    cells = Cells()

    async def refusal(tool, **arguments):
        """Returns the text of an error; None when there is none."""
        answer = await client.call(tool, arguments)
        return answer.text if answer.is_error else None

    async def tool_named(name):
        [found] = [tool for tool in await client.tools() if tool["name"] == name]
        return found

    @cells.add("report")
    async def _():
        equal((await client.call("report", {"city": "Bern"})).text, REPORT)

    @cells.add("progress and log")
    async def _():
        steps = []

        async def on_progress(*step):
            steps.append(step)

        client.logs.clear()
        await client.call("report", {"city": "Bern"}, on_progress)
        equal(steps, [(day, 3, f"day {day}") for day in (1, 2, 3)])
        await until(lambda: len(client.logs) == 3, "the log")
        found = [log["msg"] if isinstance(log, dict) else log for log in client.logs]
        equal(found, [f"day {day} of Bern" for day in (1, 2, 3)])

    @cells.add("question")
    async def _():
        for client.sure, said in ((True, "booked: Bern"), (False, "not booked")):
            answer = await client.call("book", {"city": "Bern"})
            if "Cannot request input" in answer.text:
                raise Missing(NO_SESSIONS)
            equal(answer.text, said)
        client.sure = None  # the user declines, which may end the tool with an error
        said = (await client.call("book", {"city": "Bern"})).text
        equal("booked: Bern" in said, False, "it was booked")

    @cells.add("structured result")
    async def _():
        found = await client.call("offer", GIVEN)
        equal(found.structured, {"price": 400, "leaves": "2026-12-03"})
        schema = (await tool_named("offer"))["outputSchema"]
        equal(set(schema["properties"]), {"price", "leaves"})

    @cells.add("typed arguments")
    async def _():
        told = json.dumps((await tool_named("offer"))["inputSchema"])
        for part in ('"date"', '["simple", "fine"]', '"minimum": 1'):
            equal(part in told, True, f"{part} in the schema")
        for wrong in ({"nights": 31}, {"arrives": "soon"}, {"comfort": "some"}):
            equal(await refusal("offer", **{**GIVEN, **wrong}) is None, False, str(wrong))

    @cells.add("arguments of another type are refused")
    async def _():
        if not await refusal("offer", **{**GIVEN, "nights": "2"}):
            raise Missing('"2" passes for the number 2')

    @cells.add("unknown arguments are refused")
    async def _():
        why = await refusal("offer", **GIVEN, comfrt="fine")
        if why is None:
            raise Missing("an unknown argument is ignored")
        if '"comfort"' not in why:
            raise Missing("refused, but the nearest name is not told")

    @cells.add("error")
    async def _():
        why = await refusal("cancel", trip="7")
        equal("There is no trip 7" in (why or ""), True, f"the reason in {why!r}")

    @cells.add("defects are masked")
    async def _():
        why = await refusal("broken")
        equal(why is None, False, "an error")
        if "hunter2" in why:
            raise Missing("clients read the text of every exception")

    @cells.add("resource")
    async def _():
        equal(await client.read("desk://policy"), ["Be kind.", "text/plain"])

    @cells.add("resource template")
    async def _():
        equal(json.loads((await client.read("desk://trips/7"))[0]), {"trip": "7"})
        equal(await client.templates(), ["desk://trips/{trip}"])

    @cells.add("prompt")
    async def _():
        equal(await client.prompt("plan", {"city": "Bern"}), "Plan a trip to Bern.")

    @cells.add("completion")
    async def _():
        equal(await client.complete("plan", "city", "Be"), ["Berlin", "Bern"])

    return cells
