"""A small server on fastmcp: `fastmcp_server.py http|sse`, on the loopback port in PORT."""

import os
import sys

from fastmcp import Context, FastMCP

server = FastMCP("fastmcp-peer", version="1")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
async def count(steps: int, ctx: Context) -> str:
    """Counts, and reports each step as progress and in the log."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await ctx.info(f"step {step}")
    return f"counted to {steps}"


@server.tool
async def ask_name(ctx: Context) -> str:
    """Asks for a name, which this library can do in the older revisions only."""
    answer = await ctx.elicit("What is your name?", response_type=str)
    return f"{answer.action} {answer.data}" if answer.action == "accept" else answer.action


@server.tool
def fail() -> str:
    """Fails."""
    raise ValueError("this tool always fails")


@server.resource("note://today", mime_type="text/plain")
def note() -> str:
    """A text."""
    return "nothing is planned"


@server.prompt
def greet(name: str) -> str:
    """A greeting."""
    return f"Greet {name}."


server.run(transport=sys.argv[1], host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
