"""A client in Python with a travel desk.  client.py LIBRARY ERA COMMAND...|URL
LIBRARY: official (the Python SDK), fastmcp or segue."""
import os
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import anyio

from cells import run_cells
from desk_cells import Answer, desk_cells

warnings.simplefilter("ignore")  # deprecation warnings for the old eras
library, era, command, *args = sys.argv[1:]
over_http = command.startswith("http")
modern = era == "modern"
LEVEL = {"io.modelcontextprotocol/logLevel": "info"} if modern else None


def text_of(blocks):
    return "".join(block.text for block in blocks)


class Traveller:
    """logs: the data of log messages; sure: the user's answer, None declines."""

    def __init__(self):
        self.logs = []
        self.sure = True

    def answer(self, schema):
        if self.sure is None:
            return None
        return dict.fromkeys(schema["properties"], self.sure)


class Official(Traveller):
    def open(self):
        from mcp import Client, StdioServerParameters

        server = command if over_http else StdioServerParameters(
            command=command, args=args, env=dict(os.environ))
        return Client(server, mode="2026-07-28" if modern else "legacy", cache=None,
                      logging_callback=self.on_log, elicitation_callback=self.on_question)

    async def begin(self, session):
        self.session = session
        if not modern and session.server_capabilities.logging:
            await session.set_logging_level("info")

    async def on_log(self, params):
        self.logs.append(params.data)

    async def on_question(self, _, params):
        from mcp_types import ElicitResult

        given = self.answer(params.requested_schema)
        if given is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=given)

    async def call(self, tool, arguments, on_progress=None):
        from mcp.shared.exceptions import MCPError

        try:
            found = await self.session.call_tool(
                tool, arguments, progress_callback=on_progress, meta=LEVEL)
        except MCPError as error:
            return Answer(error.error.message, is_error=True)
        return Answer(text_of(found.content), found.structured_content, found.is_error)

    async def tools(self):
        listed = (await self.session.list_tools()).tools
        return [tool.model_dump(by_alias=True) for tool in listed]

    async def read(self, uri):
        [found] = (await self.session.read_resource(uri)).contents
        return [found.text, found.mime_type]

    async def templates(self):
        listed = (await self.session.list_resource_templates()).resource_templates
        return [one.uri_template for one in listed]

    async def prompt(self, name, arguments):
        [message] = (await self.session.get_prompt(name, arguments)).messages
        return message.content.text

    async def complete(self, name, argument, value):
        from mcp_types import PromptReference

        of = PromptReference(type="ref/prompt", name=name)
        found = await self.session.complete(of, {"name": argument, "value": value})
        return found.completion.values


class FastMcp(Official):
    def open(self):
        from fastmcp import Client
        from fastmcp.client.transports import StdioTransport

        server = command if over_http else StdioTransport(command, args, dict(os.environ))
        return Client(server, mode="2026-07-28" if modern else "legacy",
                      log_handler=self.on_log, elicitation_handler=self.on_question)

    async def begin(self, session):
        self.session = session
        if not modern and session.initialize_result.capabilities.logging:
            await session.set_logging_level("info")

    async def on_question(self, message, kind, params, context):
        from fastmcp.client.elicitation import ElicitResult

        given = self.answer(params.requested_schema)
        if given is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=given)

    async def call(self, tool, arguments, on_progress=None):
        from mcp.shared.exceptions import MCPError

        try:
            found = await self.session.call_tool(
                tool, arguments, progress_handler=on_progress, meta=LEVEL,
                raise_on_error=False)
        except MCPError as error:
            return Answer(error.error.message, is_error=True)
        return Answer(text_of(found.content), found.structured_content, found.is_error)

    async def tools(self):
        listed = await self.session.list_tools()
        return [tool.model_dump(by_alias=True) for tool in listed]

    async def read(self, uri):
        [found] = await self.session.read_resource(uri)
        return [found.text, found.mime_type]

    async def templates(self):
        return [one.uri_template for one in await self.session.list_resource_templates()]

    async def complete(self, name, argument, value):
        from mcp_types import PromptReference

        of = PromptReference(type="ref/prompt", name=name)
        given = {"name": argument, "value": value}
        return (await self.session.complete(of, given)).values


class Segue(Traveller):
    def open(self):
        import segue

        return segue.connect(
            command if over_http else [command, *args], era=era,
            **({"proxy": ""} if over_http else {}),
            on_log=lambda log: self.logs.append(log.data), on_elicit=self.on_question)

    async def begin(self, session):
        self.session = session

    def on_question(self, asked):
        import segue

        given = self.answer(asked.schema)
        return segue.ElicitResult("decline" if given is None else "accept", given)

    async def call(self, tool, arguments, on_progress=None):
        import segue

        try:
            found = await self.session.call(
                tool, arguments, on_progress=on_progress, raise_on_error=False)
        except segue.RemoteError as error:
            return Answer(error.message, is_error=True)
        return Answer(found.text, found.structured, found.is_error)

    async def tools(self):
        import msgspec

        return [msgspec.to_builtins(tool) for tool in await self.session.list_tools()]

    async def read(self, uri):
        [found] = (await self.session.read_resource(uri)).contents
        return [found.text, found.mime_type]

    async def templates(self):
        return [one.uri_template for one in await self.session.list_resource_templates()]

    async def prompt(self, name, arguments):
        [message] = (await self.session.get_prompt(name, arguments)).messages
        return message.content.text

    async def complete(self, name, argument, value):
        return (await self.session.complete(name, argument, value)).values


async def main():
    client = {"official": Official, "fastmcp": FastMcp, "segue": Segue}[library]()
    async with client.open() as session:
        await client.begin(session)
        await run_cells(desk_cells(client))


anyio.run(main)
