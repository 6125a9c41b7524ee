"""Write the parts of these pages that follow from the code: ``python docs/generate.py``; ``--check`` changes nothing.

A part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``, NAME being a key of `PARTS`, or ``command``
and the words of a command. Whatever the code says for itself (signatures, docstrings, tables, options) is taken from
it, so that a page cannot say otherwise.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import store  # noqa: E402
from store import (  # noqa: E402
    context,
    errors,
    freshness,
    importing,
    inspection,
    planning,
    policy,
    prompts,
    records,
    schema,
    simulation,
    summaries,
    summarizers,
    tokens,
    tool_kinds,
    tool_output,
    transcripts,
    verdicts,
)

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FUNCTIONS = (
    *(policy.load, summarizers.named, summarizers.chat_model, summaries.extractive, prompts.load, simulation.simulate),
    *(importing.import_file, transcripts.read, transcripts.sniff, inspection.query, tokens.counter, tokens.fetch),
    *(context.mentions, context.remind, tool_output.compress, freshness.Freshness),
)
"""What a program may call beside the two faces."""
PUBLISHED = {"store.mentions": "store.context", "store.summaries.values": "store.summaries"}
"""The modules whose names are imported from another one."""
VALUES = (
    *(summaries.SummaryRequest, summaries.Summary, summaries.KeyAction, summaries.FileChange, planning.Plan),
    *(simulation.Prices, simulation.Simulated, context.Context, context.Piece),
)
"""What operations, such functions and summarizers are given and give back."""

MARK = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def public_methods(face: type) -> dict[str, Any]:
    """Return the public methods of a class, in the order of its body."""
    return {name: each for name, each in vars(face).items() if not name.startswith("_") and callable(each)}


def error_classes() -> list[type[store.StoreError]]:
    """Return the error classes, in the order of their module."""
    found = (each for each in vars(errors).values() if inspect.isclass(each))
    return [each for each in found if issubclass(each, store.StoreError)]


def record_classes() -> list[Any]:
    """Return the classes of records, in the order of their module."""
    return [each for each in vars(records).values() if inspect.isclass(each) and hasattr(each, "_fields")]


def notes_of_fields(owner: type) -> dict[str, str]:
    """Return the string below each annotated field of a class: what the field means."""
    body = ast.parse(inspect.getsource(owner)).body[0]
    assert isinstance(body, ast.ClassDef)
    notes = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            assert isinstance(below.value, ast.Constant)
            notes[field.target.id] = _plain(str(below.value.value))
    return notes


def commands() -> dict[tuple[str, ...], Any]:
    """Return every command by the words that call it; a group's own commands follow it."""
    import typer

    from store.cli import app

    return dict(_commands_of(typer.main.get_command(app), ()))


def _commands_of(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            yield from _commands_of(each, (*words, name))


def options(command: Any) -> dict[str, Any]:
    """Return what a command takes, by how it is written."""
    return {_written(each): each for each in command.params if not getattr(each, "hidden", False)}


def _written(parameter: Any) -> str:
    value = parameter.metavar or parameter.name.upper()
    if parameter.param_type_name == "argument":
        return str(value)
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} {value}"


# Below: the parts.

POLICY_RULES: tuple[tool_kinds.Kind, ...] = ("terminal", "file_read")
"""The rules of a policy, by the kind of tool that each is about."""
REPLACED = {**dict.fromkeys(POLICY_RULES, "replaced"), "cleared": "replaced", "tool_output": "in short"}
"""What the rules do with a result."""


SOURCES = re.compile(r" \([A-Z]\d*\.\d+[a-z]?(?:[-, ]+[A-Z]\d*\.\d+[a-z]?)*\)| \([A-Z]\d\)")
"""Where a rule was written down first: of use in the code only."""


def _plain(text: str | None) -> str:
    """Return a docstring's text as Markdown: one space between words, `code` for both kinds of backticks."""
    return SOURCES.sub("", re.sub(r"\s+", " ", (text or "").replace("``", "`"))).strip()


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(_plain(each) for each in inspect.cleandoc(text or "").split("\n\n"))


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [list(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def signature(method: Callable[..., Any], first: int = 1) -> str:
    """Return a method's parameters without ``self`` (or the connection that stands for it) and its result."""
    whole = inspect.signature(method)
    text = str(whole.replace(parameters=list(whole.parameters.values())[first:]))
    text = text.replace(repr(policy.DEFAULT), "Policy()").replace(repr(policy.TURNS), 'Policy.named("turns")')
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


def methods() -> str:
    """Return each method of `Store`: how it is called and what it does."""
    parts = [f"### Store\n\n```text\nStore{signature(store.Store.__init__)}\n```\n\n{_paragraphs(store.Store.__doc__)}"]
    for name, method in public_methods(store.Store).items():
        parts.append(f"### {name}\n\n```text\n{name}{signature(method)}\n```\n\n{_paragraphs(method.__doc__)}")
    return "\n\n".join(parts)


def async_methods() -> str:
    """Return what `AsyncStore` has."""
    face = store.AsyncStore
    both = public_methods(store.Store)
    names = public_methods(face)
    shared = ", ".join(f"`{name}`" for name in names if name in both)
    own = "\n".join(
        f"- `{name}{signature(each)}`: {_plain(each.__doc__)}" for name, each in names.items() if name not in both
    )
    missing = ", ".join(f"`{name}`" for name in both if name not in names) or "nothing"
    return (
        f"```text\nAsyncStore{signature(face.__init__)}\n```\n\n{_paragraphs(face.__doc__)}\n\n"
        f"Awaited, with the parameters of `Store`: {shared}.\n\nIts own:\n\n{own}\n\nOf `Store` it lacks: {missing}."
    )


def record_list() -> str:
    """Return each record, its fields and what they mean."""
    return "\n\n".join(
        f"### {each.__name__}\n\n{_paragraphs(each.__doc__)}\n\n{_fields(each)}" for each in record_classes()
    )


def values() -> str:
    """Return each value that summarizers and functions are given or give back."""
    return "\n\n".join(f"### {_place(each)}\n\n{_paragraphs(each.__doc__)}\n\n{_fields(each)}" for each in VALUES)


def _place(each: Any) -> str:
    """Return the full name by which something is imported."""
    return f"{PUBLISHED.get(each.__module__, each.__module__)}.{each.__name__}"


def _fields(record: Any) -> str:
    """Return the fields of a record with their types, then its properties."""
    lines = [f"- `{name}`: `{type_.__forward_arg__}`" for name, type_ in record.__annotations__.items()]
    properties = {name: each for name, each in vars(record).items() if isinstance(each, property)}
    lines += [f"- `{name}`, a property: {_plain(each.__doc__)}" for name, each in properties.items()]
    return "\n".join(lines)


def error_list() -> str:
    """Return each error, what it reports, what else it is."""
    rows = (
        (f"`{each.__name__}`", _plain(each.__doc__), " ".join(f"`{base.__name__}`" for base in each.__bases__))
        for each in error_classes()
    )
    return _table(["error", "what it does", "is a"], rows)


UNWRITTEN = {
    "name": "A name of your own.",
    "terminal_placeholder": "What stands for old output of a command.",
    "file_read_placeholder": "What stands for an old read of a file.",
}
"""Fields whose meaning the code says elsewhere."""


def policy_fields() -> str:
    """Return each field of a policy, its default and what it means."""
    notes = notes_of_fields(policy.Policy)
    rows = (
        (f"`{name}`", _values(field.annotation), f"`{_value(field.default)}`", notes.get(name) or UNWRITTEN[name])
        for name, field in policy.Policy.model_fields.items()
    )
    return _table(["field", "values", "default", "meaning"], rows)


def _value(value: object) -> str:
    return f"{value:,}".replace(",", "_") if type(value) is int else repr(value).replace("'", '"')


PLAIN_TYPES = {bool: "`True`, `False`", int: "whole number", float: "number", str: "text"}


def _values(annotation: Any) -> str:
    """Return what a field may be: types in words, bounds aside, choices one by one."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in map(json.dumps, parts))
    if origin is tuple:
        return f"some of {_values(parts[0])}"
    if origin is Annotated:
        return _values(parts[0])
    if origin in (Union, UnionType):
        return ", ".join(_values(each) for each in parts if each is not NoneType) + ", or none"
    return PLAIN_TYPES.get(annotation, "name → kind")


def policies() -> str:
    """Return each ready policy and what it changes."""
    rows = ((f"`{name}`", _changes(fields)) for name, fields in policy.POLICIES.items())
    return _table(["policy", "what it changes of the defaults"], rows)


def _changes(fields: dict[str, Any]) -> str:
    return ", ".join(f"`{name}={value!r}`" for name, value in fields.items()) or "nothing"


def reasons() -> str:
    """Return each reason an entry of a view may give."""
    rows = ((f"`{key}`", REPLACED.get(key, "stays"), text) for key, text in verdicts.REASONS.items())
    return _table(["why", "the result", "reason of the entry"], rows)


def kinds() -> str:
    """Return which tools of which program the two rules are about."""
    programs = {**tool_kinds._PROGRAMS, **{f"MCP server {name}": kinds for name, kinds in tool_kinds._SERVERS.items()}}
    rows = ((program, *(_names(kinds.get(kind, "")) for kind in POLICY_RULES)) for program, kinds in programs.items())
    return _table(["program", *(f"`{kind}`" for kind in POLICY_RULES)], rows)


def _names(text: str) -> str:
    return " ".join(f"`{name}`" for name in text.split())


def tool_rules() -> str:
    """Return each rule of tool output: the tools that it is about, what it keeps."""
    by_kind = {rule: kind for kind, rule in tool_output.KIND_RULES.items()}
    rows = (
        (f"`{name}`", _names(" ".join(_named(name))), f"`{by_kind[name]}`" if name in by_kind else "", rule.keeps)
        for name, rule in tool_output.RULES.items()
    )
    return _table(["rule", "tools", "and others of kind", "keeps"], rows)


def _named(rule: str) -> Iterator[str]:
    return (name for name, named in tool_output.NAMES.items() if named == rule)


def tables() -> str:
    """Return each table: its key, its other columns, what it refers to."""
    parts = []
    for table in schema.METADATA.sorted_tables:
        key = [column.name for column in table.primary_key.columns]
        rest = [_column(column) for column in table.columns if column.name not in key]
        refers = sorted({each.referred_table.name for each in table.foreign_key_constraints})
        parts.append((f"`{table.name}`", f"`{', '.join(key)}`", ", ".join(rest), ", ".join(f"`{r}`" for r in refers)))
    return _table(["table", "key", "other columns", "refers to"], sorted(parts))


def _column(column: Any) -> str:
    return f"`{column.name}`" + ("?" if column.nullable else "")


def triggers() -> str:
    """Return each trigger of the database and what it says when it refuses."""
    rows = [(f"`{name}`", f"`{table}`", found[1]) for name, table, found in _triggers()]
    return _table(["trigger", "on", "refuses with"], rows)


def _triggers() -> Iterator[tuple[str, str, re.Match[str]]]:
    for name, table, text in _master("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY 1"):
        found = re.search(r"RAISE\(ABORT, '(.*)'\)", text)
        assert found
        yield name, table, found


def views() -> str:
    """Return each view for people and its columns."""
    names = [row[0] for row in _master("SELECT name FROM sqlite_master WHERE type = 'view'")]
    rows = ((f"`{name}`", ", ".join(f"`{row[1]}`" for row in _master(f"PRAGMA table_info({name})"))) for name in names)
    return _table(["view", "columns"], rows)


def _master(query: str) -> list[Any]:
    with store.Store(":memory:") as made, made.database.reading() as connection:
        return list(connection.exec_driver_sql(query))


def transcript_kinds() -> str:
    """Return each kind of transcript that can be read."""
    return _table(
        ["kind", "what it looks like"], ((f"`{name}`", kind.expected) for name, kind in transcripts.KINDS.items())
    )


def command(words: tuple[str, ...]) -> str:
    """Return what a command does and what it takes."""
    found = commands()[words]
    rows = [(f"`{written}`", _meaning(each)) for written, each in options(found).items()]
    return f"{_paragraphs(found.help)}\n\n{_table(['takes', 'meaning'], rows)}" if rows else _paragraphs(found.help)


def _meaning(parameter: Any) -> str:
    default = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if default is None or parameter.param_type_name == "argument" or parameter.is_flag:
        return _plain(parameter.help)
    return f"{_plain(parameter.help)} Default: {default}."


def functions() -> str:
    """Return the functions beside the faces: where they are, how they are called, what they do."""
    return "\n\n".join(
        f"### {_place(each)}\n\n```text\n{_called(each)}\n```\n\n{_paragraphs(each.__doc__)}" for each in FUNCTIONS
    )


def _called(each: Any) -> str:
    """Return how a function is called, or a class and its methods."""
    if not inspect.isclass(each):
        return f"{each.__name__}{signature(each, first=0)}"
    methods = (f"    .{name}{signature(method)}" for name, method in public_methods(each).items())
    return "\n".join([f"{each.__name__}{signature(each, first=0)}", *methods])


def layers() -> str:
    """Return the layers of a request, as the module that assembles it tells them."""
    rows = re.findall(r"^    (\w+) {2,}(?:L\d +)?(\S.*?) +[SA]\d\.\d+$", context.__doc__ or "", re.MULTILINE)
    assert tuple(layer for layer, _ in rows) == context.LAYERS
    return _table(["layer", "what it is"], ((f"`{layer}`", _plain(meaning)) for layer, meaning in rows))


PARTS: dict[str, Callable[[], str]] = {
    "methods": methods,
    "async_methods": async_methods,
    "records": record_list,
    "values": values,
    "errors": error_list,
    "policy_fields": policy_fields,
    "policies": policies,
    "reasons": reasons,
    "kinds": kinds,
    "tool_rules": tool_rules,
    "tables": tables,
    "triggers": triggers,
    "views": views,
    "transcripts": transcript_kinds,
    "functions": functions,
    "layers": layers,
}


def filled(text: str) -> str:
    """Return a page with its generated parts made anew."""
    return MARK.sub(lambda found: f"{found[1]}\n{_part(found[2])}\n\n{found[3]}", text)


def _part(name: str) -> str:
    first, *words = name.split()
    return command(tuple(words)) if first == "command" else PARTS[name]()


def main(arguments: list[str]) -> str | None:
    """Write the pages, or return which are stale."""
    stale = {page: new for page in PAGES if (new := filled(old := page.read_text("utf-8"))) != old}
    if "--check" in arguments:
        return f"stale: {', '.join(page.name for page in stale)}; run python docs/generate.py" if stale else None
    for page, text in stale.items():
        page.write_text(text, "utf-8")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
