"""A server on the Python SDK: `python_server.py stdio|http legacy|modern`, over HTTP on the loopback port in PORT.

It speaks one era only. What its tools do is the same in both, and the same as in `typescript_server.mjs`: one test program
visits all of them and must see no difference.
"""

import json
import os
import sys
import uuid

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.message import ServerMessageMetadata
from starlette.applications import Starlette
from starlette.routing import Route

TRANSPORT, ERA = sys.argv[1:3]
NOTE = "note://today"
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

bus = InMemorySubscriptionBus()
touched = False
cancelled = 0
level = "debug"


def text(words, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], **more)


def question(message, properties, required):
    schema = {"type": "object", "properties": properties, "required": required}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def needs(state=None, **requests):
    return types.InputRequiredResult(input_requests=requests, request_state=state)


async def log(ctx, at, data):
    # To heed the level is left to the server in the older revisions.
    if ERA == "modern" or LEVELS.index(at) >= LEVELS.index(level):
        await ctx.session.send_log_message(at, data, "counter", related_request_id=ctx.request_id)


async def add(ctx, params):
    total = params.arguments["a"] + params.arguments["b"]
    return text(str(total), structured_content={"sum": total})


async def fail(ctx, params):
    return text("it failed", is_error=True)


async def count(ctx, params):
    steps = params.arguments["steps"]
    for step in range(1, steps + 1):
        await log(ctx, "debug", {"step": step})
        await log(ctx, "warning", {"step": step})
        await ctx.session.report_progress(step, steps, f"step {step}")
    return text(f"counted to {steps}")


async def interrupted(ctx, params):
    await ctx.session.report_progress(1, 2, "step 1")
    if ctx.close_sse_stream:
        await ctx.close_sse_stream()
    await anyio.sleep(0.1)
    await ctx.session.report_progress(2, 2, "step 2")
    return text("went on")


async def ask_name(ctx, params):
    answer = (params.input_responses or {}).get("name")
    if answer is None:
        properties = {
            "name": {"type": "string", "title": "Name", "minLength": 1},
            "times": {"type": "integer", "default": 2},
        }
        return needs(name=question("What is your name?", properties, ["name"]))
    if answer.action != "accept":
        return text(answer.action)
    return text(f"accept {answer.content['name']} {answer.content['times']}")


async def order(ctx, params):
    answers = params.input_responses or {}
    if "size" in answers:
        return text(f"{answers['size'].content['size']} {json.loads(params.request_state)['dish']}")
    if "dish" in answers:
        state = json.dumps({"dish": answers["dish"].content["dish"]})
        choice = {"type": "string", "enum": ["small", "large"]}
        return needs(state, size=question("Which size?", {"size": choice}, ["size"]))
    return needs(dish=question("Which dish?", {"dish": {"type": "string"}}, ["dish"]))


async def ask_url(ctx, params):
    answer = (params.input_responses or {}).get("page")
    if answer is not None:
        return text(answer.action)
    wanted = {"message": "Please sign in", "url": "https://example.com/sign-in"}
    if ERA == "legacy":
        wanted["elicitation_id"] = str(uuid.uuid4())
    return needs(page=types.ElicitRequest(params=types.ElicitRequestURLParams(**wanted)))


async def ask_model(ctx, params):
    answer = (params.input_responses or {}).get("verse")
    if answer is not None:
        return text(f"{answer.model}: {answer.content.text}")
    asked = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Write a verse."))
    wanted = types.CreateMessageRequestParams(messages=[asked], max_tokens=50)
    return needs(verse=types.CreateMessageRequest(params=wanted))


async def ask_roots(ctx, params):
    answer = (params.input_responses or {}).get("roots")
    if answer is not None:
        return text(" ".join(str(root.uri) for root in answer.roots))
    return needs(roots=types.ListRootsRequest())


async def touch(ctx, params):
    global touched
    touched = True
    if ERA == "modern":
        await bus.publish(ResourceUpdated(uri=NOTE))
        await bus.publish(ToolsListChanged())
    else:
        await ctx.session.send_resource_updated(NOTE)
        await ctx.session.send_tool_list_changed()
    return text("touched")


async def wait(ctx, params):
    global cancelled
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        cancelled += 1
        raise
    return text("not cancelled")


async def count_cancelled(ctx, params):
    for _ in range(100):
        if cancelled > 0:
            break
        await anyio.sleep(0.05)
    return text(str(cancelled))


async def extra(ctx, params):
    return text("extra")


def tool(name, description, run, properties=None, **more):
    properties = properties or {}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.Tool(name=name, description=description, input_schema=schema, **more), run


INTEGER = {"type": "integer"}
SUM = {"type": "object", "properties": {"sum": INTEGER}, "required": ["sum"]}
TOOLS = [
    tool("add", "Adds two numbers.", add, {"a": INTEGER, "b": INTEGER}, output_schema=SUM),
    tool("fail", "Fails.", fail),
    tool("count", "Counts, and reports each step.", count, {"steps": INTEGER}),
    tool("interrupted", "Loses its stream half way, where streams can be continued.", interrupted),
    tool("ask_name", "Asks for a name.", ask_name),
    tool("order", "Asks twice, and keeps the first answer in the state.", order),
    tool("ask_url", "Asks to open a page.", ask_url),
    tool("ask_model", "Asks the model of the client.", ask_model),
    tool("ask_roots", "Asks for the roots of the client.", ask_roots),
    tool("touch", "Changes the note, and the list of tools.", touch),
    tool("wait", "Waits until it is cancelled.", wait),
    tool("cancelled", "Waits until a call was cancelled, and says how many were.", count_cancelled),
]
EXTRA = tool("extra", "Is there once the server was touched.", extra)


def tools():
    return [*TOOLS, EXTRA] if touched else TOOLS


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[described for described, _ in tools()])


async def call_tool(ctx, params):
    for described, run in tools():
        if described.name == params.name:
            break
    else:
        return text(f"there is no tool {params.name}", is_error=True)
    while True:
        result = await run(ctx, params)
        if ERA == "modern" or not isinstance(result, types.InputRequiredResult):
            return result
        # In the older revisions the server asks in the middle of the call.
        answers = {key: await answered(ctx, request) for key, request in result.input_requests.items()}
        changed = {"input_responses": answers, "request_state": result.request_state}
        params = params.model_copy(update=changed)


async def answered(ctx, request):
    kinds = {"elicitation/create": types.ElicitResult, "roots/list": types.ListRootsResult}
    kind = kinds.get(request.method, types.CreateMessageResult)
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, kind, metadata=related)


async def list_resources(ctx, params):
    return types.ListResourcesResult(resources=[types.Resource(uri=NOTE, name="today", mime_type="text/plain")])


async def read_resource(ctx, params):
    words = "touched" if touched else "untouched"
    contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=words)
    return types.ReadResourceResult(contents=[contents])


async def list_prompts(ctx, params):
    return types.ListPromptsResult(
        prompts=[types.Prompt(name="greet", arguments=[types.PromptArgument(name="name", required=True)])]
    )


async def get_prompt(ctx, params):
    content = types.TextContent(type="text", text=f"Greet {params.arguments['name']}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def complete(ctx, params):
    values = [name for name in ["Ada", "Alan", "Grace"] if name.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


async def set_level(ctx, params):
    global level
    level = params.level
    return types.EmptyResult()


async def accept(ctx, params):
    # There is one connection to this server, and one resource.
    return types.EmptyResult()


class SamePeer(Server):
    def create_initialization_options(self, notification_options=None, *more, **named):
        changes = NotificationOptions(resources_changed=True, tools_changed=True)
        return super().create_initialization_options(notification_options or changes, *more, **named)


server = SamePeer(
    "same-peer",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_level,
    on_subscribe_resource=accept if ERA == "legacy" else None,
    on_unsubscribe_resource=accept if ERA == "legacy" else None,
    on_subscriptions_listen=ListenHandler(bus) if ERA == "modern" else None,
)
server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="same-peer"))


class Events(EventStore):
    """Keeps all events in memory, for streams that are continued."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return f"e{len(self.events)}"

    async def replay_events_after(self, last_event_id, send_callback):
        print("continued after an event", file=sys.stderr, flush=True)
        start = int(last_event_id.removeprefix("e"))
        stream = self.events[start - 1][0]
        for index, (stream_id, message) in enumerate(self.events):
            if index >= start and stream_id == stream and message is not None:
                await send_callback(EventMessage(message, f"e{index + 1}"))
        return stream


class LegacyManager(StreamableHTTPSessionManager):
    """The half of the SDK's manager that knows the older revisions."""

    async def _handle_request(self, scope, receive, send):
        await self._handle_stateful_request(scope, receive, send)


def over_http():
    kind = LegacyManager if ERA == "legacy" else StreamableHTTPSessionManager
    manager = kind(server, event_store=Events(), retry_interval=20)
    route = Route("/mcp", StreamableHTTPASGIApp(manager))
    app = Starlette(routes=[route], lifespan=lambda app: manager.run())
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")


async def over_stdio():
    async with stdio_server() as (reader, writer):
        if ERA == "modern":
            return await server.run(reader, writer, server.create_initialization_options())
        async with server.lifespan(server) as state:
            await serve_loop(server, reader, writer, lifespan_state=state)


if TRANSPORT == "stdio":
    anyio.run(over_stdio)
else:
    over_http()
