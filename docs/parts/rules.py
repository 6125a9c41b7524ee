"""What the rules say of tools and results, the layers of a request, kinds of transcripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from store import context, transcripts
from store.context import request
from store.tools import kinds as tool_kinds
from store.tools import short_rules
from store.view import rules as view_rules

from .markdown import as_table, plain

POLICY_RULES: tuple[tool_kinds.ToolResultKind, ...] = ("terminal", "file_read")
"""The rules of a policy, by the kind of tool that each is about."""


DONE = {
    "replaces": "replaced",
    "names": "named in a line",
    "shortens": "in short",
    "keeps": "stays",
}
"""What a row of the table of rules does with a result, in one word."""


def reasons() -> str:
    """Return each reason an entry of a view may give."""
    table = (*view_rules.RULE_TABLE, *view_rules.LATER_RULES)
    rows = ((f"`{rule.name}`", DONE[rule.does], rule.reason) for rule in table)
    return as_table(["why", "the result", "reason of the entry"], rows)


STEP = re.compile(r"^(\w+) AS .*\(  -- (.+)$", re.MULTILINE)
WINDOW = re.compile(r"(\w+)\(\w*\) OVER \(\s*((?:PARTITION BY \w+ )?ORDER BY \w+ DESC, \w+ DESC)")


def steps() -> str:
    """Return each step of the judging, as the query file tells them, with its window."""
    written, _, _ = view_rules.RULES_FILE.read_text("utf-8").partition("-- query: ")
    names = [(found[1], found[2], found.end()) for found in STEP.finditer(written)]
    ends = [*(found.start() for found in STEP.finditer(written)), len(written)][1:]
    rows = []
    for (name, what, begin), end in zip(names, ends, strict=True):
        window = WINDOW.search(written, begin, end)
        over = f"`{window[1]}(…) OVER ({window[2]})`" if window else ""
        rows.append((f"`{name}`", what, over.replace("ROW_NUMBER(…)", "ROW_NUMBER()")))
    return as_table(["step", "content", "window"], rows)


def kinds() -> str:
    """Return which tools of which program the two rules are about."""
    programs = {
        **tool_kinds._PROGRAM_TOOLS,
        **{f"MCP server {name}": kinds for name, kinds in tool_kinds._SERVER_TOOLS.items()},
    }
    rows = (
        (program, *(_names(kinds.get(kind, "")) for kind in POLICY_RULES))
        for program, kinds in programs.items()
    )
    return as_table(["program", *(f"`{kind}`" for kind in POLICY_RULES)], rows)


def _names(text: str) -> str:
    return " ".join(f"`{name}`" for name in text.split())


def tool_rules() -> str:
    """Return each rule of tool output: the tools that it is about, what it keeps."""
    by_kind = {rule: kind for kind, rule in short_rules.KIND_RULES.items()}
    rows = (
        (
            f"`{name}`",
            _names(" ".join(_named(name))),
            f"`{by_kind[name]}`" if name in by_kind else "",
            rule.keeps,
        )
        for name, rule in short_rules.SHORT_RULES.items()
    )
    return as_table(["rule", "tools", "and others of kind", "keeps"], rows)


def _named(rule: str) -> Iterator[str]:
    return (name for name, named in short_rules.TOOL_RULES.items() if named == rule)


def layers() -> str:
    """Return the layers of a request, as the module that assembles it tells them."""
    rows = re.findall(r"^    (\w+) {2,}(\S.*)$", request.__doc__ or "", re.MULTILINE)
    assert tuple(layer for layer, _ in rows) == context.LAYERS
    return as_table(
        ["layer", "content"], ((f"`{layer}`", plain(meaning)) for layer, meaning in rows)
    )


UNSEEN = "its description, not seen"
"""What a kind of transcript is written from where no real file was read."""
WRITTEN_BY = {
    "openai": "by `export`",
    "convostore": "by `export --all`",
    **{
        name: f"by `export --as {name}`"
        for name in ("anthropic", "responses", "claude_code", "codex")
    },
}
"""What writes a kind of transcript."""


def transcript_kinds() -> str:
    """Return each kind of transcript that can be read."""
    return as_table(
        ["kind", "recognised by", "written from", "written back", "linked", "left out"],
        (
            (f"`{name}`", kind.expected, "real files" if kind.seen else UNSEEN, *_told(name, kind))
            for name, kind in transcripts.TRANSCRIPT_KINDS.items()
        ),
    )


def _told(name: str, kind: transcripts.TranscriptKind) -> tuple[str, str, str]:
    """Return what writes a kind, what its sessions are linked by, what is left out."""
    return WRITTEN_BY.get(name, ""), kind.linked, kind.left_out


def homes() -> str:
    """Return where programs keep their sessions, as an import looks for them."""
    return as_table(
        ["kind", "folder of your home", "names of files", "elsewhere"],
        (
            (f"`{name}`", f"`{home.folder}`", quoted(home.names), variable(home))
            for name, kind in transcripts.TRANSCRIPT_KINDS.items()
            for home in kind.homes
        ),
    )


def variable(home: transcripts.Home) -> str:
    """Return what of the environment may name another folder, "" where nothing does."""
    return f"`${home.variable}`" if home.variable else ""


def quoted(names: tuple[str, ...]) -> str:
    """Return names as they are written in a cell of a table."""
    return ", ".join(f"`{name}`" for name in names)
