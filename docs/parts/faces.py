"""The methods of the faces, written from the operations: plain code that every tool can read.

An operation is a function of a room whose first argument is a connection (or what opens
transactions). A method of a face has its parameters, result and help, and hands it to the face in
a `Call`; the awaited method hands that one to a thread. What follows from the tables here is kept
as ``store/face/operations.py`` and ``store/face/async_operations.py``, so that an editor, a type
checker and a reader of documentation find functions with signatures and docstrings.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, get_overloads

from store import compaction, context, history, inspection, search
from store import view as views
from store.face.store import Scoped, Store
from store.face.workflows import Workflows

from .imports import render_import

HIDES_BUILTIN = "  # noqa: A002 - the public name"
"""The note on a parameter that has the name of a built-in function."""
READ, WRITE, WORKFLOW = "_read", "_write", "_run_workflow"
VIEW, CHECK = "_read_view", "_check_store"
"""The method of a face that carries a call out."""

Operations = dict[str, tuple[str, Callable[..., Any]]]

SESSIONS: Operations = {
    "create_session": (WRITE, history.sessions.create_session),
    "session": (READ, history.sessions.load_session),
    "title": (READ, history.message_lookup.load_title),
    "sessions": (READ, history.listing.list_sessions),
    "count_sessions": (READ, history.listing.count_sessions),
    "archive": (WRITE, history.sessions.archive_session),
    "unarchive": (WRITE, history.sessions.unarchive_session),
    "rename_session": (WRITE, history.sessions.rename_session),
    "set_metadata": (WRITE, history.sessions.set_metadata),
    "set_origin": (WRITE, history.sessions.set_origin),
    "file_state": (READ, history.imported_files.load_file_state),
    "set_file_state": (WRITE, history.imported_files.set_file_state),
    "set_project_root": (WRITE, history.facts.set_project_root),
    "append": (WRITE, history.append.append_messages),
    "messages": (READ, history.raw_messages.load_session_messages),
    "message": (READ, history.message_lookup.load_message),
    "calls": (READ, history.tool_use.list_calls),
    "open_calls": (READ, history.tool_use.list_open_calls),
    "files": (READ, history.tool_use.list_file_uses),
    "find": (READ, history.message_lookup.find_messages_by_id),
    "turns": (READ, history.message_lookup.list_turns),
    "fork": (WRITE, history.heads.fork_session),
    "rewind": (WRITE, history.heads.rewind_session),
    "switch": (WRITE, history.heads.switch_branch),
    "branches": (READ, history.session_branches.list_branches),
    "siblings": (READ, history.message_lookup.list_siblings),
    "replace": (WRITE, history.heads.replace_messages),
    "pop": (WRITE, history.heads.pop_message),
    "drafts": (READ, history.drafts.list_drafts),
    "finish_draft": (WRITE, history.drafts.finish_draft),
    "discard_draft": (WRITE, history.drafts.discard_draft),
    "undo_rewind": (WRITE, history.heads.undo_rewind),
    "head_moves": (READ, history.heads.list_head_moves),
    "view": (VIEW, views.build.view),
    "view_sql": (READ, views.statement.view_sql),
    "check": (READ, compaction.check),
    "requests": (READ, context.request_log.list_requests),
    "request": (READ, context.request_log.load_request),
    "record_usage": (WRITE, history.usages.record_usage),
    "usages": (READ, history.usages.list_usages),
    "usage_totals": (READ, history.usages.compute_usage_totals),
    "annotate": (WRITE, history.message_notes.annotate_message),
    "annotations": (READ, history.message_notes.list_notes),
    "compactions": (READ, compaction.compactions),
    "hidden": (READ, views.visible_set.hidden),
    "recall": (READ, search.hidden_passages.recall),
    "replaced": (READ, inspection.replaced),
    "hide": (WRITE, compaction.hide),
    "plan_clearing": (READ, compaction.plan_clearing),
    "plan_compaction": (READ, compaction.plan_compaction),
    "undo_compaction": (WRITE, compaction.undo_compaction),
    "redact": (WRITE, history.redaction.redact_message_at),
}
"""Operations on sessions: the name of the method → how it is carried out, and the function."""

SEVERAL: Operations = {
    "pages": (WORKFLOW, history.raw_messages.iterate_pages),
    "compact": (WORKFLOW, compaction.compact),
    "compact_if_needed": (WORKFLOW, compaction.compact_if_needed),
    "count_tokens": (WORKFLOW, history.token_counts.count_tokens),
    "search": (WORKFLOW, search.hits.search),
}
"""Operations on sessions that open several transactions."""

WHOLE: Operations = {
    "redactions": (READ, history.redaction.list_redactions),
    "erasures": (READ, history.erasure.list_erasures),
    "copies": (READ, inspection.listed),
    "verify": (CHECK, inspection.integrity.verify),
    "size": (READ, inspection.storage_use.measure_size),
    "prices": (READ, history.price_rows.list_prices),
    "set_prices": (WRITE, history.price_rows.set_prices),
}
"""Operations on the whole store."""

WAITS = {
    "compact",
    "compact_if_needed",
    "count_tokens",
    "delete_session",
    "forget",
    "delete_owner",
    "prune",
    "purge",
    "index",
    "backup",
    "atomically",
}
"""Methods that may wait for other writers or for a summary, beside the operations that write."""

RECORDED = {"view", "context"}
"""Methods that read, and write what they have read if that is asked for."""

GROUPED = {"append"}
"""Methods that are written together with others of their kind that wait for the same file."""

AWAITED: dict[str, Callable[..., Any]] = {
    "delete_session": Workflows.delete_session,
    "forget": Workflows.forget,
    "prune": Workflows.prune,
    "context": Workflows.context,
    "frame": Workflows.frame,
    "metrics": Workflows.metrics,
    "observe": Workflows.observe,
}
"""Methods of `Workflows` that are written by hand; those of `Store` and `Scoped` follow."""
OF_STORE: dict[str, Callable[..., Any]] = {
    "delete_owner": Store.delete_owner,
    "purge": Store.purge,
    "index": Store.index,
    "backup": Store.backup,
    "cache_info": Store.cache_info,
    "health": Store.health,
    "atomically": Store.atomically,
    "reading": Store.reading,
}
OF_OWNER: dict[str, Callable[..., Any]] = {
    "delete_owner": Scoped.delete_owner,
    "redactions": Scoped.redactions,
    "index": Scoped.index,
    "atomically": Scoped.atomically,
    "reading": Scoped.reading,
}


class Needs(NamedTuple):
    """The names that annotations need, by module, and the type variables among them."""

    imports: dict[str, set[str]]
    variables: set[str]


# --- The parts of a method ------------------------------------------------------------------------


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters but the first, which is the connection or the face."""
    return [*inspect.signature(function).parameters.values()][1:]


def render_head(name: str, function: Callable[..., Any], *, awaited: bool = False) -> str:
    """Return the first lines of a method, a parameter a line, without the colon."""
    lines = ["self,"]
    kind = None
    for each in parameters_of(function):
        if kind is each.POSITIONAL_ONLY is not each.kind:
            lines.append("/,")
        if each.kind is each.KEYWORD_ONLY and kind not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            lines.append("*,")
        kind = each.kind
        star = "*" if each.kind is each.VAR_POSITIONAL else ""
        default = "" if each.default is each.empty else f" = {each.default!r}"
        default = default.replace("'", '"') if default.count("'") == 2 else default
        note = HIDES_BUILTIN if each.name in ("any", "format", "input") else ""
        kept = str(each.annotation).replace("'", '"')
        lines.append(f"{star}{each.name}: {kept}{default},{note}")
    if kind is inspect.Parameter.POSITIONAL_ONLY:
        lines.append("/,")
    result = inspect.signature(function).return_annotation
    opening = f"{'async ' if awaited else ''}def {name}("
    return "\n".join([opening, *(f"    {line}" for line in lines), f") -> {result}"])


def render_help(function: Callable[..., Any]) -> str:
    """Return the docstring of a function as it stands in a method."""
    text = inspect.getdoc(function)
    return f'"""{text}\n"""' if text and "\n" in text else f'"""{text}"""'


def render_list(opening: str, items: list[str], closing: str) -> str:
    """Return a call or display with an item a line."""
    return "\n".join([opening, *(f"    {item}," for item in items), closing])


def name_operation(function: Callable[..., Any]) -> str:
    """Return a function by its room and module, as it is asked for where it is used first."""
    return f"{function.__module__.removeprefix('store.')}.{function.__name__}"


def render_operation(name: str, how: str, function: Callable[..., Any]) -> str:
    """Return the method that hands an operation to the face."""
    positional, keywords = [], []
    for each in parameters_of(function):
        is_clocked = each.name == "now" and how is not WORKFLOW
        value = "self._moment(now)" if is_clocked else each.name
        if each.kind is each.KEYWORD_ONLY:
            keywords.append(f'"{each.name}": {value}')
        else:
            positional.append(value)
    arguments = f"({', '.join(positional)}{',' * (len(positional) == 1)})"
    options = render_list("{", keywords, "}") if keywords else "{}"
    items = [name_operation(function), arguments, textwrap.indent(options, "    ").lstrip()]
    items.append(f'name="{name}"')
    call = render_list("call = Call(", items, ")")
    body = [render_help(function), call, f"return self.{how}(call)"]
    head = render_head(name, function)
    method = f"{head}:\n" + textwrap.indent("\n".join(body), "    ")
    return textwrap.indent("\n".join([*render_stubs(name, function), method]), "    ")


def render_stubs(name: str, function: Callable[..., Any], *, awaited: bool = False) -> list[str]:
    """Return the overloads of a method, in which a name that hides a built-in one hides none."""
    heads = (render_head(name, each, awaited=awaited) for each in get_overloads(function))
    return [f"@overload\n{head.replace(HIDES_BUILTIN, '')}: ..." for head in heads]


def render_awaited(owner: str, name: str, function: Callable[..., Any], *, waits: bool) -> str:
    """Return the method that hands one of another face to a thread."""
    passed = [
        f"{each.name}={each.name}"
        if each.kind is each.KEYWORD_ONLY
        else f"{'*' * (each.kind is each.VAR_POSITIONAL)}{each.name}"
        for each in parameters_of(function)
    ]
    is_iterator = name == "pages"
    items = ["self._call", f"{owner}.{name}", *passed]
    work = render_list("work = partial(", items, ")")
    overloads = get_overloads(function)
    if overloads:
        work = work.replace(
            f"{owner}.{name},", f"{owner}.{name},  # type: ignore[arg-type] # overloads"
        )
    kind = ", is_grouped=True" if name in GROUPED else ", waits=True" * waits
    if name in RECORDED:
        kind = ", waits=record"
    run = f"return await self._run(work{kind})"
    ends = "return AsyncPages(self, work)" if is_iterator else run
    head = render_head(name, function, awaited=not is_iterator)
    head = head.replace("-> Iterator[", "-> AsyncIterator[")
    stubs = render_stubs(name, function, awaited=True)
    body = textwrap.indent("\n".join([render_help(function), work, ends]), "    ")
    return textwrap.indent("\n".join([*stubs, f"{head}:\n{body}"]), "    ")


# --- What annotations need ------------------------------------------------------------------------


def origins_of(module: str) -> dict[str, str]:
    """Return where each name of a module is imported from; of what it defines, the module."""
    source = inspect.getsource(sys.modules[module])
    package = module if hasattr(sys.modules[module], "__path__") else module.rpartition(".")[0]
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            parent = package.split(".")
            start = parent[: len(parent) + 1 - node.level] if node.level else []
            origin = ".".join([*start, *filter(None, [node.module])])
            found |= {alias.asname or alias.name: origin for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name: "" for alias in node.names}
    return found


def names_in(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the names in a function's annotations."""
    signature = inspect.signature(function)
    texts = [each.annotation for each in parameters_of(function)]
    for text in [*texts, signature.return_annotation]:
        yield from (each.id for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Name))


def collect_imports(functions: list[Callable[..., Any]], needs: Needs) -> None:
    """Add what annotations of functions need."""
    for function in (each for one in functions for each in (one, *get_overloads(one))):
        origins = origins_of(function.__module__)
        for name in names_in(function):
            value = vars(sys.modules[function.__module__]).get(name)
            if isinstance(value, TypeVar):
                needs.variables.add(name)
            elif name in origins or value is not None:
                module = room_of(origins.get(name, function.__module__))
                needs.imports.setdefault(module, set()).add(name)


def room_of(module: str) -> str:
    """Return where a module's names are imported from: of a module in another room, the room."""
    is_near = module.startswith("store.face.") or not module.startswith("store.")
    return module if is_near else ".".join(module.split(".")[:2])


def render_imports(needs: Needs) -> str:
    """Return the imports that only type checkers need, in the order of the import sorter."""
    others, rooms, near = [], [], []
    for module, names in sorted(needs.imports.items()):
        if not module:
            others += [f"    import {name}" for name in sorted(names)]
        elif module.startswith("store.face."):
            near.append(render_import(module.removeprefix("store.face"), names))
        elif module.startswith("store."):
            rooms.append(render_import(module.replace("store.", "..", 1), names))
        else:
            others.append(render_import(module, names))
    return "\n".join([*others, "", *rooms, *near])


def render_class(name: str, subject: str, methods: list[str]) -> str:
    """Return a class of operations."""
    heading = f'class {name}:\n    """Operations on {subject}."""'
    return "\n\n".join([heading, *methods]) + "\n"


# --- The two modules ------------------------------------------------------------------------------

GENERATED = "Written by ``python docs/generate.py`` from the tables in ``docs/parts/faces.py``."


def operations() -> str:
    """Return the module of the operations that each face has."""
    needs = Needs({}, set())
    rooms = set()
    for table in (SESSIONS, SEVERAL, WHOLE):
        functions = [function for _, function in table.values()]
        collect_imports(functions, needs)
        rooms |= {name_operation(each).partition(".")[0] for each in functions}
    classes = (
        ("Operations(Face)", "sessions, each of one transaction", SESSIONS),
        (
            "LongOperations(Operations, WorkflowFace)",
            "sessions, some of several transactions",
            SEVERAL,
        ),
        ("StoreOperations(Operations)", "a whole store, each of one transaction", WHOLE),
    )
    texts = [
        render_class(name, subject, [render_operation(each, *how) for each, how in table.items()])
        for name, subject, table in classes
    ]
    head = f'''"""The operations of a store as methods: what each face has under the same names.

{GENERATED}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from .. import {", ".join(sorted(rooms))}
from .calls import Call, Face, WorkflowFace

if TYPE_CHECKING:
{render_imports(needs)}
'''
    return "\n\n".join([head, *texts])


def async_operations() -> str:
    """Return the module of the same operations, awaited."""
    needs = Needs({}, set())
    pairs = {**SESSIONS, **SEVERAL}
    writes = {name for name, (how, _) in pairs.items() if how is WRITE}
    shared = {name: function for name, (_, function) in pairs.items()} | AWAITED
    whole = {name: function for name, (_, function) in WHOLE.items()} | OF_STORE
    classes = (
        ("AsyncOperations(Threads)", "Workflows", "sessions", shared),
        ("AsyncStoreOperations(AsyncOperations)", "Store", "a whole store", whole),
        ("AsyncScopedOperations(AsyncOperations)", "Scoped", "an owner's sessions", OF_OWNER),
    )
    texts = []
    for name, owner, subject, table in classes:
        collect_imports([*table.values()], needs)
        methods = [
            render_awaited(owner, each, function, waits=each in WAITS | writes)
            for each, function in table.items()
        ]
        texts.append(render_class(name, f"{subject}, awaited", methods))
    needs.imports["collections.abc"] |= {"AsyncIterator"}
    needs.imports["collections.abc"] -= {"Iterator"}
    variables = "".join(f'{each} = TypeVar("{each}")\n' for each in sorted(needs.variables))
    head = f'''"""The operations of a store, awaited: one thread hop for each.

{GENERATED}
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar, overload

from .store import Scoped, Store
from .threads import AsyncPages, Threads
from .workflows import Workflows

if TYPE_CHECKING:
{render_imports(needs)}

{variables}'''
    return "\n\n".join([head, *texts])
