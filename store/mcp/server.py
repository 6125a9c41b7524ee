"""The server: tools, a resource and a prompt of the Model Context Protocol, over stdio."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from inspect import getdoc
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from ..errors import StoreError
from ..policy import FIELD_PROBLEMS, Policy
from ..release import find_release
from .answers import NOTICE, Answer, Source, mask_texts, write_json
from .digests import load_guidance
from .tools import History

TOOLS = [name for name in vars(History) if not name.startswith("_")]
WRITING_TOOLS = ("fork", "note")
READING, WRITING = (
    ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False)
    for reads in (True, False)
)
VIEW_POLICY = Policy.named("agent")
"""The policy that the guide recommends."""


class HistoryServer(MCPServer[None]):
    """A server whose refusals of arguments name the problem and the remedy."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> Any:
        """Call a tool; unknown arguments are refused, as they would be lost."""
        names_of = {each.name: each.input_schema["properties"] for each in await self.list_tools()}
        names = names_of.get(name, arguments)
        for unknown in (each for each in arguments if each not in names):
            there = ", ".join(names)
            return build_error_result(f"{name} has no argument {unknown!r}; it has {there}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                return build_error_result(describe_argument_problems(error.__cause__))
            raise


def build_error_result(text: str) -> CallToolResult:
    """Return an answer that names the problem and the remedy."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def describe_argument_problems(problem: ValidationError) -> str:
    """Return the problems of a call's arguments, one sentence each."""
    told = []
    for found in problem.errors():
        name = ".".join(map(str, found["loc"]))
        limits = found.get("ctx", {})
        right = FIELD_PROBLEMS.get(found["type"], found["msg"]).format(**limits)
        given = "" if found["type"] == "missing" else f", not {found['input']!r:.60}"
        told.append(f"{name}: {right}{given}")
    return "; ".join(told)


def build_server(
    source: Source,
    *,
    read_only: bool = False,
    secrets: bool = False,
    describe_progress: Callable[[], str | None] = lambda: None,
    give_way: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> HistoryServer:
    """Return a server on the sessions of a store, or of one owner.

    With ``read_only`` it has no tool that writes. What looks like a key is dotted unless
    ``secrets``. ``describe_progress`` tells how far an import is (None: it is done), which waits
    in each context of ``give_way``.
    """
    history = History(source, secrets=secrets, describe_progress=describe_progress)
    server = HistoryServer(
        "convostore", instructions=load_guidance(), version=find_release(), log_level="WARNING"
    )
    for name in (each for each in TOOLS if not (read_only and each in WRITING_TOOLS)):
        server.add_tool(
            answer_errors(getattr(history, name), str if secrets else mask_texts, give_way),
            name,
            description=getdoc(getattr(history, name)),
            annotations=WRITING if name in WRITING_TOOLS else READING,
            structured_output=False,
        )

    @server.resource("convostore://session/{id}", mime_type="application/json")
    def session(id: str) -> str:  # noqa: A002 - the name in the address
        """Read a session: its messages as a model is sent them, by the policy ``agent``."""
        try:
            messages = source.view(id, VIEW_POLICY).messages
        except StoreError as error:
            raise ResourceError(str(error)) from error
        shown = messages if secrets else mask_texts(messages)
        return write_json({"notice": NOTICE, "messages": shown})

    @server.prompt("ask_the_past")
    def ask_the_past() -> str:
        """Tell an agent when to ask past sessions, and how."""
        return load_guidance()

    return server


def answer_errors(
    tool: Callable[..., Answer],
    clean: Callable[[str], str],
    give_way: Callable[[], AbstractContextManager[object]],
) -> Callable[..., CallToolResult]:
    """Return a tool whose answer is JSON, and whose errors are answers, ``clean`` ones."""

    @wraps(tool)
    def answer(**arguments: Any) -> CallToolResult:
        try:
            with give_way():
                told = tool(**arguments)
        except StoreError as error:
            return build_error_result(clean(str(error)))
        return CallToolResult(
            content=[TextContent(type="text", text=write_json(told))], structured_content=told
        )

    return answer
