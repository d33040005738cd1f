"""The items of a server on the Python SDK beside plain tools: resources, prompts,
completion, and tools that ask the client or change the lists."""
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp_types import (
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

MODERN = "2026-07-28"
URI = "test://static-text"
FORM = ElicitRequestFormParams(message="Your name?", requested_schema={
    "type": "object", "properties": {"name": {"type": "string"}}})
THOUGHT = CreateMessageRequestParams(max_tokens=100, messages=[SamplingMessage(
    role="user", content=TextContent(type="text", text="Say something."))])
WORDS = ("paris", "park", "london")


def is_modern(ctx):
    return ctx.protocol_version == MODERN


def add_items(server):
    add_resources(server)
    add_prompts(server)
    add_questions(server)
    add_rounds(server)
    add_changes(server)


def add_resources(server):
    @server.resource("test://static-binary", name="static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        return b"\x89PNG\0"


def add_prompts(server):
    @server.prompt()
    def arguments(arg1: str, arg2: str = "none") -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt()
    def blocks() -> list[UserMessage]:
        inside = TextResourceContents(uri="test://x", text="Embedded.")
        image = ImageContent(type="image", mime_type="image/png", data="cG5n")
        return [UserMessage(image),
                UserMessage(EmbeddedResource(type="resource", resource=inside))]

    @server.completion()
    async def complete(ref, argument, context):
        return Completion(values=[word for word in WORDS
                                  if word.startswith(argument.value)])


def told_name(answer):
    return f"{answer.action} {(answer.content or {}).get('name', '')}".strip()


def told_model(answer):
    return f"{answer.model}: {answer.content.text}"


def told_roots(answer):
    return ",".join(str(root.uri) for root in answer.roots)


def add_questions(server):
    """In the modern era the call ends with its question, and comes again."""

    async def ask(ctx, key, request, by_request, tell):
        if not is_modern(ctx):
            return tell(await by_request())
        if key in (ctx.input_responses or {}):
            return tell(ctx.input_responses[key])
        return InputRequiredResult(input_requests={key: request})

    @server.tool(structured_output=False)
    async def ask_name(ctx: Context) -> str | InputRequiredResult:
        return await ask(ctx, "name", ElicitRequest(params=FORM),
                         lambda: elicit(ctx), told_name)

    @server.tool(structured_output=False)
    async def ask_model(ctx: Context) -> str | InputRequiredResult:
        def sample():
            return ctx.session.create_message(THOUGHT.messages, max_tokens=100,
                                              related_request_id=ctx.request_id)

        return await ask(ctx, "model", CreateMessageRequest(params=THOUGHT), sample,
                         told_model)

    @server.tool(structured_output=False)
    async def ask_roots(ctx: Context) -> str | InputRequiredResult:
        return await ask(ctx, "roots", ListRootsRequest(), ctx.session.list_roots,
                         told_roots)


def elicit(ctx):
    return ctx.session.elicit_form(FORM.message, FORM.requested_schema,
                                   related_request_id=ctx.request_id)


def add_rounds(server):
    @server.tool(structured_output=False)
    async def ask_twice(ctx: Context) -> str | InputRequiredResult:
        if not is_modern(ctx):
            names = [(await elicit(ctx)).content["name"] for _ in range(2)]
            return " and ".join(names)
        request = {"name": ElicitRequest(params=FORM)}
        if not ctx.request_state:
            return InputRequiredResult(input_requests=request, request_state="begun")
        name = ctx.input_responses["name"].content["name"]
        if ctx.request_state == "begun":
            return InputRequiredResult(input_requests=request, request_state=name)
        return f"{ctx.request_state} and {name}"


def add_changes(server):
    @server.tool(structured_output=False)
    async def update(ctx: Context) -> str:
        if is_modern(ctx):
            await ctx.notify_resource_updated(URI)
        else:
            await ctx.session.send_resource_updated(URI)
        return "updated"

    def extra() -> str:
        return "extra"

    @server.tool(structured_output=False)
    async def toggle_items(ctx: Context) -> str:
        if any(prompt.name == "extra" for prompt in await server.list_prompts()):
            server.remove_prompt("extra")
        else:
            server.add_prompt(Prompt.from_function(extra, name="extra"))
        if is_modern(ctx):
            await ctx.notify_prompts_changed()
            await ctx.notify_resources_changed()  # the SDK cannot remove one
        else:
            await ctx.session.send_prompt_list_changed()
            await ctx.session.send_resource_list_changed()
        return "changed"
