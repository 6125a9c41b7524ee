"""Transcripts of other programs, read as sessions and messages by pure parsers.

Each kind of transcript is a row of `KINDS`: its name, what it looks like, how it is read. Kinds are
told apart by content, never by suffix. `importing` and commands call `sniff` and `read`. Nothing
here knows a store; what a parser yields can be appended as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import StoreError, UnknownTranscript
from . import (
    anthropic,
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    copilot_cli,
    exported,
    gemini_cli,
    oasst,
    openai,
    opencode,
    openhands,
    pi,
    qwen_code,
    sharegpt,
    swe_agent,
    tau_bench,
    vscode_chat,
)
from .archive import Archive, is_export
from .events import EXTRA_KEYS, Compacted, Event, Noted, Opened, Said, Stem, sketch
from .exported import HEAD
from .foreign import program_of
from .homes import VSCODE_CHATS, Home
from .openai import OWNER, PROJECT_ROOT, stands_before
from .source import FilePath, Progress, Source, Value, packed_as
from .spent import Spent, Tokens, spent_on

__all__ = [
    "EXTRA_KEYS",
    "HEAD",
    "KINDS",
    "OWNER",
    "PROJECT_ROOT",
    "Compacted",
    "Event",
    "FilePath",
    "Home",
    "Noted",
    "Opened",
    "Progress",
    "Said",
    "Spent",
    "Stem",
    "Tokens",
    "is_home",
    "is_kept",
    "read",
    "size",
    "sniff",
    "spent_on",
    "stands_before",
]


class TranscriptKind(NamedTuple):
    """A kind of transcript: ``looks`` tells one of its values, ``parse`` reads a whole file.

    ``expected`` says in words what it looks like; ``foreign`` names the program of a value that
    only looks so, None where its messages can be read. ``seen`` where real files were read, else it
    is written from their description. ``linked`` names what sessions are linked by, ``left_out``
    what a note counts. ``homes`` are where its program keeps its files.
    """

    expected: str
    looks: Callable[[Any], bool]
    parse: Callable[[Source], Iterator[Event]]
    foreign: Callable[[Any], str | None] = lambda _: None
    seen: bool = True
    linked: str = ""
    left_out: str = ""
    homes: tuple[Home, ...] = ()


KINDS = {
    "openai": TranscriptKind(
        "messages with a role, in a list, under 'messages' or one a line",
        openai.looks,
        openai.parse,
        openai.foreign,
        left_out="what is no message",
    ),
    "anthropic": TranscriptKind(
        "messages with blocks of Anthropic's API, in a list, under 'messages' or one a line",
        anthropic.looks,
        anthropic.parse,
        anthropic.foreign,
        left_out="what is no message",
    ),
    "tau_bench": TranscriptKind(
        "records with a 'traj' and a 'task_id'", tau_bench.looks, tau_bench.parse
    ),
    "swe_agent": TranscriptKind(
        "an object with a 'history' of messages",
        swe_agent.looks,
        swe_agent.parse,
        left_out="steps, which repeat it",
    ),
    "qwen_code": TranscriptKind(
        "lines with a 'type', a 'sessionId' and a message of 'parts'",
        qwen_code.looks,
        qwen_code.parse,
        seen=False,
        linked="branches",
        left_out="rows of the system",
        homes=(Home(".qwen", ("projects/*/chats/*.jsonl", "tmp/*/chats/*.jsonl")),),
    ),
    "claude_code": TranscriptKind(
        "lines with a 'type' and a 'sessionId'",
        claude_code.looks,
        claude_code.parse,
        claude_code.foreign,
        linked="branches, subagents, resumed sessions, compactions",
        left_out="copies, progress, hooks, snapshots",
        homes=(
            Home(".claude", ("projects/*.jsonl",), "CLAUDE_CONFIG_DIR"),
            Home(".config/claude", ("projects/*.jsonl",)),
        ),
    ),
    "codex": TranscriptKind(
        "lines with a 'type' and a 'payload'",
        codex.looks,
        codex.parse,
        linked="branches, parents, compactions",
        left_out="lines for the screen",
        homes=(
            Home(
                ".codex",
                ("sessions/*rollout-*.json*", "archived_sessions/*rollout-*.json*"),
                "CODEX_HOME",
            ),
        ),
    ),
    "openhands": TranscriptKind(
        "events with a 'source', in a list or one a line",
        openhands.looks,
        openhands.parse,
        left_out="states, recalls, metrics",
    ),
    "convostore": TranscriptKind(
        "a head under 'convostore', and messages on lines after it",
        exported.looks,
        exported.parse,
        linked="forks",
    ),
    "chatgpt": TranscriptKind(
        "conversations with a 'mapping' of nodes, also in the export's zip",
        chatgpt.looks,
        chatgpt.parse,
        seen=False,
        linked="branches",
        left_out="files beside it",
    ),
    "claude_ai": TranscriptKind(
        "conversations with 'chat_messages', also in the export's zip",
        claude_ai.looks,
        claude_ai.parse,
        seen=False,
        linked="branches",
        left_out="files beside it",
    ),
    "gemini_cli": TranscriptKind(
        "a head with a 'sessionId' and a 'projectHash', and messages in it or on lines after it",
        gemini_cli.looks,
        gemini_cli.parse,
        linked="branches",
        left_out="notices",
        homes=(Home(".gemini", ("tmp/*/chats/*.json", "tmp/*/chats/*.jsonl")),),
    ),
    "copilot_cli": TranscriptKind(
        "events with a 'type', 'data' and a 'parentId'",
        copilot_cli.looks,
        copilot_cli.parse,
        linked="branches, subagents, compactions",
        left_out="hooks, permissions, turns",
        homes=(Home(".copilot", ("session-state/*.jsonl",)),),
    ),
    "vscode_chat": TranscriptKind(
        "a chat with 'requests', or the log of its changes",
        vscode_chat.looks,
        vscode_chat.parse,
        seen=False,
        linked="branches",
        left_out="parts for the screen",
        homes=(
            Home(".config/Code/User", VSCODE_CHATS),
            Home("Library/Application Support/Code/User", VSCODE_CHATS),
            Home("AppData/Roaming/Code/User", VSCODE_CHATS),
        ),
    ),
    "pi": TranscriptKind(
        "a head with a 'cwd', and entries on lines after it",
        pi.looks,
        pi.parse,
        linked="branches, compactions",
        left_out="changes of model and state",
        homes=(Home(".pi", ("agent/sessions/*.jsonl",)),),
    ),
    "opencode": TranscriptKind(
        "an 'info' with 'messages' of parts, as its export has it",
        opencode.looks,
        opencode.parse,
        seen=False,
        linked="branches, compactions, parents",
        left_out="patches, snapshots",
    ),
    "sharegpt": TranscriptKind(
        "records with 'conversations' of turns",
        sharegpt.looks,
        sharegpt.parse,
        left_out="what is no turn",
    ),
    "oasst": TranscriptKind(
        "trees of a 'prompt' and its replies",
        oasst.looks,
        oasst.parse,
        linked="branches",
    ),
}

SNIFFED_VALUES = 200
"""Values of a file, at most, that are looked at to tell its kind, or that it is another program's.
"""


def is_home(name: str) -> bool:
    """Tell whether a hidden folder of this name is one in which a program keeps sessions."""
    return any(name == home.folder for kind in KINDS.values() for home in kind.homes)


def is_kept(path: Path) -> bool | None:
    """Tell whether a file, by its absolute path, is one in which a program keeps a session.

    None where it is in no program's folder, so that only its content can tell.
    """
    told = [home.holds(path) for kind in KINDS.values() for home in kind.homes]
    known = [each for each in told if each is not None]
    return any(known) if known else None


def sniff(path: str | PathLike[str]) -> str:
    """Return the kind of transcript a file holds, judged by its content.

    Raises UnknownTranscript, naming what was found and what was expected; StoreError where the file
    cannot be read.
    """
    return _sniff(_open(path))


def read(
    path: str | PathLike[str],
    *,
    kind: str | None = None,
    progress: Progress | None = None,
    lines: Progress | None = None,
) -> Iterator[Event]:
    """Read a transcript: each session, then its messages, with notes on what was left out.

    Where its program compacted the context, that is told behind the message before.

    ``kind`` None means by content. ``progress`` gets the bytes consumed so far, ``lines`` at the
    end how many were read, a document being one. The same file gives the same events each time.
    Raises StoreError where the file cannot be read, UnknownTranscript where it is none.
    """
    _refuse_unknown(kind)
    source = _open(path)
    found = KINDS[kind or _sniff(source)]
    source.report_to(progress)
    return _events(source, found, lines or (lambda _: None))


def _refuse_unknown(kind: str | None) -> None:
    if kind is not None and kind not in KINDS:
        kinds = ", ".join(KINDS)
        raise StoreError(f"there is no kind of transcript {kind!r}; the kinds are {kinds}")


def size(path: str | PathLike[str]) -> int:
    """Return a file's size in bytes: what `read` reports progress against. Raises StoreError."""
    try:
        return Path(path).stat().st_size
    except OSError as problem:
        raise _unreadable(path, problem) from problem


def _open(path: FilePath) -> Source:
    try:
        if Path(path).is_fifo():
            raise OSError("it is a pipe, which may never end and cannot be read twice")
        if is_export(path):
            return Archive(path)
        _refuse_packed(path)
        return Source(path)
    except OSError as problem:
        raise _unreadable(path, problem) from problem


def _refuse_packed(path: FilePath) -> None:
    packed = packed_as(path)
    if packed:
        raise UnknownTranscript(f"{os.fspath(path)} is no text in UTF-8, but {packed}")


def _events(source: Source, kind: TranscriptKind, lines: Progress) -> Iterator[Event]:
    try:
        yield from kind.parse(source)
        lines(source.rows)
    except OSError as problem:
        raise _unreadable(source.path, problem) from problem
    except RecursionError as problem:
        raise StoreError(f"{source.path}: a message is nested too deeply to be read") from problem


def _sniff(source: Source) -> str:
    """Return the kind of a file's first value that tells one, unless a value is foreign to it."""
    first: Value | Noted | None = None
    kind: str | None = None
    for item in islice(source.values(), SNIFFED_VALUES):
        first = first or item
        if isinstance(item, Value):
            kind = _kind_with(kind, item.value)
            _refuse_foreign(source, kind, item.value)
    if kind is None:
        raise _unknown(source, _describe(source, first), _program_of(first))
    return kind


def _kind_with(kind: str | None, value: Any) -> str | None:
    """Return the kind of a file in which a value follows; a chat's may turn out to be another."""
    found = kind or _kind_of(value)
    is_other = found == "openai" and anthropic.looks(value)
    return "anthropic" if is_other else found


def _kind_of(value: Any) -> str | None:
    for name, kind in KINDS.items():
        if kind.looks(value):
            return name
    return None


def _refuse_foreign(source: Source, kind: str | None, value: Any) -> None:
    program = KINDS[kind].foreign(value) if kind else None
    if program:
        raise _unknown(source, _written_by(program), program)


def _written_by(program: str) -> str:
    return f"looks like a file of {program}, which is not read"


def _unknown(source: Source, found: str, program: str | None) -> UnknownTranscript:
    expected = "; ".join(f"{name} ({kind.expected})" for name, kind in KINDS.items())
    return UnknownTranscript(f"{source.path} {found}; expected one of: {expected}", program)


def _describe(source: Source, first: Value | Noted | None) -> str:
    if source.problem:
        return f"is {source.problem}"
    if first is None:
        return "is empty"
    if isinstance(first, Noted):
        return f"cannot be read: {first.text}"
    program = _program_of(first)
    return _written_by(program) if program else f"begins with {sketch(first.value)}"


def _program_of(first: Value | Noted | None) -> str | None:
    return program_of(first.value) if isinstance(first, Value) else None


def _unreadable(path: FilePath, problem: OSError) -> StoreError:
    return StoreError(f"cannot read {str(path)!r}: {problem.strerror or problem}")
