"""What a program meets: the faces, records, errors, values and functions, from their signatures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import store
from store import (
    compaction,
    context,
    copying,
    errors,
    exporting,
    importing,
    inspection,
    pages,
    policy,
    records,
    simulation,
    summaries,
    tokens,
    tools,
    transcripts,
)

from .markdown import as_table, paragraphs, plain
from .names import PUBLIC

FUNCTIONS = (
    policy.load,
    summaries.named,
    summaries.chat_model,
    summaries.anthropic_model,
    summaries.extractive,
    summaries.load,
    simulation.simulate,
    simulation.compare,
    importing.import_file,
    exporting.export_session,
    exporting.export_store,
    exporting.session_lines,
    exporting.mask,
    exporting.find_fork_siblings,
    exporting.list_sessions_of_tree,
    copying.copy,
    transcripts.read,
    transcripts.sniff,
    inspection.query,
    inspection.views,
    inspection.restore,
    inspection.check,
    inspection.doctor,
    inspection.remove_copies,
    tokens.counter,
    tokens.fetch,
    context.mentions,
    context.remind,
    tools.compress,
    pages.build_app,
    pages.serve_pages,
    pages.build_datasette_metadata,
    context.Freshness,
)
"""What a program may call beside the two faces."""


VALUES = (
    summaries.SummaryRequest,
    summaries.Summary,
    summaries.KeyAction,
    summaries.FileChange,
    compaction.Clearing,
    compaction.Plan,
    exporting.Exported,
    exporting.ForkSibling,
    exporting.Written,
    exporting.MaskedText,
    copying.Copied,
    copying.LeftTree,
    simulation.Prices,
    simulation.Simulated,
    inspection.Condition,
    context.Context,
    context.Piece,
)
"""What operations, such functions and summarizers are given and give back."""


def public_methods(face: type) -> dict[str, Any]:
    """Return the public methods of a class, in the order of its body, inherited ones first."""
    found = {name: getattr(face, name) for each in reversed(face.__mro__) for name in vars(each)}
    return {
        name: each for name, each in found.items() if not name.startswith("_") and callable(each)
    }


def error_classes() -> list[type[store.StoreError]]:
    """Return the error classes, in the order of their module."""
    found = (each for each in vars(errors).values() if inspect.isclass(each))
    return [each for each in found if issubclass(each, store.StoreError)]


def record_classes() -> list[Any]:
    """Return the classes of records, by module."""
    named = (getattr(records, name) for name in records.__all__)
    found = (each for each in named if inspect.isclass(each) and hasattr(each, "_fields"))
    return sorted(found, key=attrgetter("__module__"))


def door(each: Any) -> str:
    """Return the module that a public name is imported from.

    It is the room of its definition if that is public, else the package.
    """
    room = each.__module__.split(".")[1]
    return f"store.{room}" if room in PUBLIC else "store"


def signature(method: Callable[..., Any], first: int = 1) -> str:
    """Return a method's parameters and its result.

    ``self``, or the connection that stands for it, is left out.
    """
    whole = inspect.signature(method)
    text = str(whole.replace(parameters=list(whole.parameters.values())[first:]))
    text = text.replace(repr(policy.STANDARD_POLICY), "Policy()")
    for name in policy.POLICIES:
        text = text.replace(repr(policy.Policy.named(name)), f'Policy.named("{name}")')
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


def methods() -> str:
    """Return each method of `Store`: how it is called and what it does."""
    opened = _explained("Store", store.Store.__init__, store.Store.__doc__)
    named = public_methods(store.Store).items()
    return "\n\n".join([opened, *(_explained(name, each, each.__doc__) for name, each in named)])


def _explained(name: str, called: Callable[..., Any], text: str | None) -> str:
    return f"### {name}\n\n```text\n{name}{signature(called)}\n```\n\n{paragraphs(text)}"


def async_methods() -> str:
    """Return what `AsyncStore` has."""
    face = store.AsyncStore
    both = public_methods(store.Store)
    names = public_methods(face)
    shared = ", ".join(f"`{name}`" for name in names if name in both)
    own = "\n".join(
        f"- `{name}{signature(each)}`: {plain(each.__doc__)}"
        for name, each in names.items()
        if name not in both
    )
    missing = ", ".join(f"`{name}`" for name in both if name not in names) or "nothing"
    return "\n\n".join(
        [
            f"```text\nAsyncStore{signature(face.__init__)}\n```",
            paragraphs(face.__doc__),
            f"Awaited, with the parameters of `Store`: {shared}.",
            "Its own:",
            own or "nothing.",
            f"Of `Store` it lacks: {missing}.",
        ]
    )


def scoped_methods() -> str:
    """Return what the faces of an owner are, and what they have."""
    faces = (store.Scoped, store.AsyncScoped, store.Owned)
    return "\n\n".join(f"### {each.__name__}\n\n{_of_an_owner(each)}" for each in faces)


def stream_methods() -> str:
    """Return what an answer can be asked for while it is streamed."""
    return "\n\n".join(map(_streamed, (store.Streaming, store.AsyncStreaming)))


def _streamed(face: type) -> str:
    """Return what a stream is for, its methods and its properties."""
    named = public_methods(face).items()
    lines = [f"- `{name}{signature(each)}`: {plain(each.__doc__)}" for name, each in named]
    lines += _properties(inspect.getmembers(face))
    return "\n\n".join([f"### {face.__name__}", paragraphs(face.__doc__), "\n".join(lines)])


def _of_an_owner(face: type) -> str:
    """Return what a face is for, and which methods of `Store` it has or lacks."""
    both, names = public_methods(store.Store), public_methods(face)
    shared = ", ".join(f"`{name}`" for name in names)
    missing = ", ".join(f"`{name}`" for name in both if name not in names)
    return (
        f"{paragraphs(face.__doc__)}\n\nIt has `owner`, and of the methods of `Store`: {shared}."
        f"\n\nIt lacks: {missing}."
    )


def record_list() -> str:
    """Return each record, its fields and what they mean."""
    return "\n\n".join(
        f"### {each.__name__}\n\n{paragraphs(each.__doc__)}\n\n{_fields(each)}"
        for each in record_classes()
    )


def values() -> str:
    """Return each value that summarizers and functions are given or give back."""
    return "\n\n".join(
        f"### {_place(each)}\n\n{paragraphs(each.__doc__)}\n\n{_fields(each)}" for each in VALUES
    )


def _place(each: Any) -> str:
    """Return the full name by which something is imported."""
    return f"{door(each)}.{each.__name__}"


def _properties(members: Iterable[tuple[str, Any]]) -> list[str]:
    """Return a line for each property that is for others."""
    return [
        f"- `{name}`, a property: {plain(each.__doc__)}"
        for name, each in members
        if isinstance(each, property) and not name.startswith("_")
    ]


def _fields(record: Any) -> str:
    """Return the fields of a record with their types, then its properties."""
    lines = [
        f"- `{name}`: `{type_.__forward_arg__}`" for name, type_ in record.__annotations__.items()
    ]
    lines += _properties(vars(record).items())
    return "\n".join(lines)


def error_list() -> str:
    """Return each error, what it reports, what else it is."""
    rows = (
        (
            f"`{each.__name__}`",
            plain(each.__doc__),
            " ".join(f"`{base.__name__}`" for base in each.__bases__),
            str(each.status),
            "yes" if each.retry else "no",
        )
        for each in error_classes()
    )
    return as_table(["error", "what it does", "is a", "status", "retry"], rows)


def functions() -> str:
    """Return the functions beside the faces: where they are, how they are called, what they do."""
    return "\n\n".join(
        f"### {_place(each)}\n\n```text\n{_called(each)}\n```\n\n{paragraphs(each.__doc__)}"
        for each in FUNCTIONS
    )


def _called(each: Any) -> str:
    """Return how a function is called, or a class and its methods."""
    if not inspect.isclass(each):
        return f"{each.__name__}{signature(each, first=0)}"
    methods = (f"    .{name}{signature(method)}" for name, method in public_methods(each).items())
    return "\n".join([f"{each.__name__}{signature(each, first=0)}", *methods])
