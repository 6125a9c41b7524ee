"""The house rules that a machine can check.

Floors, libraries, lengths, docstrings, names, stray words.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT

PACKAGE = ROOT / "store"

FLOORS = [
    floor.split()
    for floor in (
        "errors text phrases cancellation release",
        "clock lazy_imports",
        "policy messages database",
        "html",
        "tokens records formats tools",
        "history summaries",
        "view",
        "compaction context inspection search",
        "face transcripts",
        "importing exporting copying simulation recall adapters",
        "pages mcp",
        "cli",
    )
]
"""The rooms (folders, and modules that users meet), floor by floor: each knows those below it."""

EDGES = {
    "cli",
    "mcp",
    "transcripts",
    "importing",
    "exporting",
    "copying",
    "simulation",
    "recall",
    "pages",
}
"""The rooms that could live elsewhere: they import what is public, and no other room knows them."""
PUBLIC = {
    *("errors", "policy", "records", "formats", "tools", "context", "summaries", "tokens"),
    *("importing", "exporting", "transcripts", "inspection", "simulation", "recall", "html"),
    *("pages", "mcp", "copying"),
}
"""The public modules beside the package itself; what is in no `__all__` of them is private."""
LEAVES = {"text", "clock", "release", "lazy_imports"}
"""What edges use besides: pure functions of texts and moments, and lazy imports, which know nothing
of a store and move along with an edge that moves.
"""

INSIDE = {
    "adapters": "stores blocks openai_items openai_agents pydantic_ai claude strands adk langchain langgraph agent_framework llama_index",
    "cli": (
        "terminal tables render chart options agent_programs installation background_import agents demo_session requests request_log compactions heads policies "
        "show savings simulation sql sessions messages search maintenance retention transfers exports usage program_folders import_summary imports pages demo commands"
    ),
    "compaction": (
        "range_facts triggers plan log_messages record_rows compaction_check hidden_range job asked_results running_bills lifecycle workflow"
    ),
    "context": "file_mentions freshness project_rules layers recall_definition request request_cache request_log",
    "database": (
        "gc_pause logs files read_only server_limits writer_queue fork_safety write_ahead operation_counters cache notifications pipeline lease heartbeat schema driver_errors listener connections group_commit statements json_sql query_files "
        "engine file_copies storage_sizes migrate"
    ),
    "exporting": "files masks page_content fork_siblings session_page programs shapes moves export",
    "face": "replicas shared_stores calls spans observers operations frames health lifetime atomic_steps streaming watches workflows store threads async_streaming async_operations async_store",
    "formats": "response_usage answer_chunks request_messages call_names tool_definitions sendable_calls chat_rows openai parts reasoning turns responses anthropic gemini react value_templates message_templates",
    "history": (
        "ancestry lines attachments erasure_log request_rows imported_files session_branches sessions facts model_prices listing price_files price_rows kept_usages usages message_notes view_cache stored_rows search_entries raw_messages tree_search_entries row_templates draft_leases append drafts erasure redaction write_pace erasure_batches retention heads branch_erasure "
        "message_lookup tool_use token_counts"
    ),
    "html": "shown_text source_code markdown_text message_parts flow templates pages notebooks",
    "importing": "session_ids usage comparison continuations session_metadata validation session known_files dump transcript files",
    "inspection": (
        "console checks usage_statistics sql_console row_pages line_checks integrity dump transfer storage_use copies upkeep distribution advice"
    ),
    "mcp": "answers passages commands digests ranking tools server",
    "messages": "json_text attached_bytes columns searched_texts plain_messages media wire_fields redacted_messages",
    "pages": "page_rendering access plots sessions reasons page_rows conversation live requests tree policies costs files sql datasette server",
    "policy": (
        "field_types ready_policies tool_results request_contents verdicts prompt_cache triggers turns "
        "summaries policy"
    ),
    "records": "exposition metrics messages compactions maintenance sessions search_results views requests",
    "search": (
        "terms scope index_state documents query index rarity index_ranges index_queries session_hits hits "
        "hidden_passages"
    ),
    "simulation": "prices context_recall replay",
    "summaries": (
        "message_texts summary prompts facts_ledger names_index transcripts actions extractive_summary "
        "summarizers"
    ),
    "tools": (
        "question_words error_comparison kinds patches path_normalization text_names excerpts error_texts failure todos calls results "
        "short_rules short_forms"
    ),
    "transcripts": (
        "parser_events disk_buffer limits other_programs usages blocks source archive database trees conversations vercel_parts claude_code codex openhands copilot_cli vscode_chat "
        "chatgpt claude_ai cursor droid goose kiro aider pi opencode gemini apis data_sets store_export stores writing kinds"
    ),
    "view": (
        "log_messages visible_set line_rows placeholders result_predicates rules read_files "
        "rule_parameters verdicts cost counts early_queries row_rendering message_rendering sent_digest explanation build statement"
    ),
}
"""The modules of each room in the order in which they can be read."""

PROGRAMS = {
    "aider": "",
    "chatgpt": "",
    "claude_ai": "",
    "copilot_cli": "",
    "cursor": "",
    "droid": "",
    "goose": "",
    "opencode": "",
    "pi": "",
    "vscode_chat": "",
    "apis": "cline openai anthropic answers responses exchanges openai_agents",
    "claude_code": "rows sessions tree web parser stream",
    "codex": "items parser",
    "data_sets": "swe_agent tau_bench tau2_bench mini_swe_agent inspect_log toolbench moatless sharegpt oasst moss agent_bench",
    "gemini": "parts gemini_cli qwen_code adk",
    "kiro": "records executions parser",
    "openhands": "program_events parser",
    "stores": "llm_logs langgraph open_webui librechat",
    "writing": "sessions gemini_contents claude_code codex markdown",
}
"""Programs, or kin, of the room of transcripts: a folder with its modules in order, or a module."""

ROOMS = {room: number for number, floor in enumerate(FLOORS) for room in floor}
ENTRANCES = ("__init__", "__main__", "alias")  # they stand above all floors
MOST_ROOMS = 33
MOST_FLOORS = 12
MOST_FLOORS_OF_A_ROOM = 6
SHARED_NAMES = 0.01
"""The share of definitions whose name another module has too: commands named as operations."""
SINGLE_USES = 0.25
"""The share of functions, those passed as values included, that are used at one other place."""

SQL_ROOMS = {
    "database",
    "history",
    "view",
    "compaction",
    "context",
    "inspection",
    "search",
    "face",
    "simulation",
}
ONLY_IN = {
    "tiktoken": {"tokens"},
    "alembic": {"database"},
    "typer": {"cli"},
    "rich": {"cli"},
    "platformdirs": {"cli"},
    "anyio": {"face"},
    "opentelemetry": {"face"},
    "jinja2": {"html", "pages"},
    "markdown_it": {"html"},
    "pygments": {"html"},
    "starlette": {"pages"},
    "uvicorn": {"pages"},
}
ON_FIRST_USE = ("alembic", "tiktoken")

LONGEST_FILE = 700
GENERATED = "Written by ``python docs/generate.py``"
LARGEST_FUNCTION = 350
NINE_OF_TEN_FUNCTIONS = 160
DENSE_LINE = 25
DENSE_SHARE = 0.01
BANNED_NAMES = re.compile("manager|helper|utils|handler", re.IGNORECASE)

# Taken apart, so that this file does not name them itself.
STRAY_WORDS = re.compile(
    r"(?<![\w.:])/"
    "(work|tmp|root)/|"
    "shared"
    r"/(?!/)|house"
    r"\.md|\bissues?"
    r" #?\d"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
NO_TOKENS = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


class Module(NamedTuple):
    """A file of the package, its room, and its name there ("" for a room's entrance)."""

    path: Path
    room: str
    name: str
    tree: ast.Module
    nodes: list[ast.AST]
    lines: int
    tokens: dict[int, int]


def read(path: Path) -> Module:
    """Read one file of the package."""
    text = path.read_text(encoding="utf-8")
    room, *inner = path.relative_to(PACKAGE).with_suffix("").parts
    name = ".".join(inner).removesuffix("__init__").removesuffix(".")
    tree = ast.parse(text)
    nodes = [*ast.walk(tree)]
    return Module(path, room, name, tree, nodes, len(text.splitlines()), tokens_of(text))


def tokens_of(text: str) -> dict[int, int]:
    """Count the tokens of each line of code; comments and docstrings are none."""
    counted: Counter[int] = Counter()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and token.line.strip().startswith('"""')
        if token.type not in NO_TOKENS and not is_docstring:
            counted[token.start[0]] += 1
    return counted


@cache
def every_module() -> list[Module]:
    """Read all files of the package, once and not before a test asks for them."""
    return [read(path) for path in sorted(PACKAGE.rglob("*.py"))]


def where(module: Module, node: ast.AST | None = None) -> str:
    """Return the place of a finding as an editor understands it."""
    return f"{module.path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def imports(module: Module) -> Iterator[tuple[ast.stmt, str]]:
    """Yield every import with its full name: ``from ..view import x`` gives ``store.view.x``."""
    package = ("store", *module.path.relative_to(PACKAGE).parent.parts)
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node, f"{name}.{alias.name}") for alias in node.names)


def inner_imports(module: Module) -> Iterator[tuple[ast.stmt, str, list[str]]]:
    """Yield the imports from the package itself: the room, and what of it.

    A name that the package itself exports comes from its room.
    """
    for node, name in imports(module):
        package, *parts = name.split(".")
        if package == "store":
            room = exported_names().get(parts[0])
            yield (node, room, parts) if room else (node, parts[0], parts[1:])


@cache
def exported_names() -> dict[str, str]:
    """Return the names that the package itself exports, each with its room."""
    (entrance,) = (module for module in every_module() if module.path == PACKAGE / "__init__.py")
    rooms = [name.split(".")[1:] for _, name in imports(entrance)]
    return {parts[1]: parts[0] for parts in rooms if len(parts) == 2 and parts[1][:1] != "_"}


def functions() -> list[tuple[int, str]]:
    """Return the tokens of each function, and where it stands."""
    return [
        (size(module, node), f"{where(module, node)} {node.name}")
        for module in every_module()
        for node in module.nodes
        if isinstance(node, Function)
    ]


def size(module: Module, function: Function) -> int:
    """Return the tokens of a function without its docstring."""
    assert function.end_lineno is not None
    lines = range(function.lineno, function.end_lineno + 1)
    return sum(module.tokens.get(line, 0) for line in lines)


def public(module: Module) -> Iterator[Function | ast.ClassDef]:
    """Yield the public functions, classes and methods.

    An overload has the docstring of what it overloads.
    """
    waiting: list[ast.stmt] = list(module.tree.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            waiting.extend(node.body)
        if not any(
            isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list
        ):
            yield node


def test_every_room_has_a_floor() -> None:
    """A new room is given its place in the table above, which stays short."""
    assert {module.room for module in every_module()} - {*ENTRANCES} == {*ROOMS}
    assert len(ROOMS) <= MOST_ROOMS
    assert len(FLOORS) <= MOST_FLOORS


def test_imports_go_down() -> None:
    """A room imports only rooms below it, so the package can be read from the first floor up."""
    wrong = [
        f"{where(module, node)} {module.room} imports {room}"
        for module in every_module()
        if module.room in ROOMS
        for node, room, _ in inner_imports(module)
        if room != module.room and ROOMS.get(room, len(ROOMS)) >= ROOMS[module.room]
    ]
    assert not wrong, "\n".join(wrong)


def test_rooms_are_entered_by_their_door() -> None:
    """What a room lets others use stands in its ``__init__``; its modules are its own business."""
    modules = {(module.room, module.name) for module in every_module()}
    wrong = [
        f"{where(module, node)} {module.room} imports {room}.{'.'.join(rest)}"
        for module in every_module()
        for node, room, rest in inner_imports(module)
        if room != module.room and len(rest) > 1 and (room, rest[0]) in modules
    ]
    assert not wrong, "\n".join(wrong)


def public_names(place: str) -> list[str]:
    """Return the `__all__` of a public module, by its name in the package ("": the package)."""
    path = PACKAGE.joinpath(*place.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    (module,) = (module for module in every_module() if module.path == file)
    names: list[str] = ast.literal_eval(value_of("__all__", module))
    return names


def is_public(parts: list[str]) -> bool:
    """Tell whether an imported name, as its parts, is public: a module, or a name of one."""
    place, name = ".".join(parts[:-1]), parts[-1]
    if place in ("", *PUBLIC):
        return name in (PUBLIC if not place else ()) or name in public_names(place)
    return len(parts) > 2 and is_public(parts[:-1]) and name in public_names(place)


def test_edges_import_what_is_public() -> None:
    """An edge can be written elsewhere, by somebody who has only the documentation."""
    edges = [module for module in every_module() if module.room in EDGES]
    wrong = [
        f"{where(module, node)} {name}"
        for module in edges
        for node, name in imports(module)
        for package, *parts in [name.split(".")]
        if package == "store" and parts[0] not in {module.room, *LEAVES} and not is_public(parts)
    ]
    wrong += [
        f"{where(module, node)} {'.'.join([*place, node.attr])}"
        for module in edges
        for name, place in public_modules_in(module).items()
        for node in module.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id == name and not is_public([*place, node.attr])
    ]
    assert {module.room for module in edges} == EDGES
    assert not wrong, "\n".join(wrong)


def public_modules_in(module: Module) -> dict[str, list[str]]:
    """Return the public modules that a module imports by name, such as ``inspection``."""
    found = (name.split(".") for _, name in imports(module))
    places = [parts for package, *parts in found if package == "store" and parts]
    return {
        parts[-1]: parts
        for parts in places
        if parts[0] != module.room
        if PACKAGE.joinpath(*parts).is_dir()
        or PACKAGE.joinpath(*parts).with_suffix(".py").is_file()
    }


def test_examples_import_what_is_public() -> None:
    """A program that is shown uses what every program may use."""
    found = [
        f"store.{node.module.partition('.')[2]}.{alias.name}".replace("..", ".").split(".")[1:]
        for path in (ROOT / "examples").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "store"
        for alias in node.names
    ]
    assert len(found) > 5
    assert [parts for parts in found if not is_public(parts)] == []


def test_no_room_of_the_core_knows_an_edge() -> None:
    """Taken away, the edges leave a package that works: only the command line starts from one."""
    wrong = [
        f"{where(module, node)} {module.room} imports {room}"
        for module in every_module()
        if module.room not in EDGES | {"__main__"}
        for node, room, _ in inner_imports(module)
        if room in EDGES
    ]
    assert not wrong, "\n".join(wrong)


def modules_inside(room: str) -> list[str]:
    """Return the modules of a room in order; those of a folder in it stand before its door.

    A module of a new kind of transcript needs no line above: only the table of kinds, which is the
    last of its room, imports it.
    """
    folders = PROGRAMS if room == "transcripts" else {}
    names = [
        name
        for module in INSIDE[room].split()
        for name in (*(f"{module}.{inner}" for inner in folders.get(module, "").split()), module)
    ]
    if room == "transcripts":
        inside = {module.name for module in every_module() if module.room == room and module.name}
        names[-1:] = [*sorted(inside.difference(names)), names[-1]]
    return names


def named_in(names: list[str], rest: list[str]) -> str | None:
    """Return which module of a room an import names: the longest name that is one."""
    told = [".".join(rest[:length]) for length in range(len(rest), 0, -1)]
    return next((name for name in told if name in names), None)


def test_modules_of_a_room_stand_in_order() -> None:
    """Inside a room, too, nothing is used before it is met."""
    for room in INSIDE:
        names = modules_inside(room)
        inside = [module for module in every_module() if module.room == room and module.name]
        assert {module.name for module in inside} == {*names}, room
        wrong = [
            f"{where(module, node)} {module.name} imports {met}"
            for module in inside
            for node, other, rest in inner_imports(module)
            if other == room and (met := named_in(names, rest))
            if names.index(met) > names.index(module.name) and not met.startswith(module.name)
        ]
        assert not wrong, "\n".join(wrong)
    folders = {module.room for module in every_module() if module.name}
    assert folders == {*INSIDE}


def test_rooms_have_few_floors() -> None:
    """A reader who follows the imports inside a room ends after a few modules."""
    for room in INSIDE:
        modules = {
            module.path.stem: module
            for module in every_module()
            if module.path.parent == PACKAGE / room and module.path.stem != "__init__"
        }
        below = {
            name: {
                rest[0] for _, other, rest in inner_imports(module) if other == room and rest
            }.intersection(modules)
            - {name}
            for name, module in modules.items()
        }
        graph = TopologicalSorter(below)
        floors: dict[str, int] = {}
        for name in graph.static_order():
            floors[name] = 1 + max((floors[each] for each in below[name]), default=0)
        assert max(floors.values(), default=0) <= MOST_FLOORS_OF_A_ROOM, (room, floors)


def test_a_name_means_one_thing() -> None:
    """A definition has a name that no other module has; those of adapters are of frameworks."""
    named: dict[str, list[str]] = {}
    for module in every_module():
        if module.room == "adapters":
            continue
        for node in module.tree.body:
            if isinstance(node, Function | ast.ClassDef):
                named.setdefault(node.name, []).append(where(module, node))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and not target.id.startswith("__"):
                        named.setdefault(target.id, []).append(where(module, node))
    shared = [place for places in named.values() if len(places) > 1 for place in places]
    assert len(shared) / sum(map(len, named.values())) <= SHARED_NAMES, shared


def test_few_functions_have_one_use() -> None:
    """What says no more than its lines stands where it is used, so that a reader jumps less."""
    imported = Counter(
        alias.asname or alias.name
        for module in every_module()
        for node in module.nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )
    found = Counter(
        token.string
        for module in every_module()
        for token in tokenize.generate_tokens(io.StringIO(module.path.read_text("utf-8")).readline)
        if token.type == tokenize.NAME
    )
    found.subtract(imported)
    public = {
        text.value
        for module in every_module()
        for node in module.tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        for text in ast.walk(node.value)
        if isinstance(text, ast.Constant)
    }
    once = [
        where(module, node)
        for module in every_module()
        for node in module.tree.body
        if isinstance(node, Function) and not node.decorator_list
        if node.name not in public and found[node.name] == 2  # its definition and its use
    ]
    assert len(once) / len(functions()) <= SINGLE_USES, once


def test_folders_of_programs_do_not_know_each_other() -> None:
    """What two programs share stands beside them, so each program is read alone."""
    wrong = [
        f"{where(module, node)} imports {'.'.join(rest)}"
        for module in every_module()
        for node, room, rest in inner_imports(module)
        if room == "transcripts" and rest and rest[0] in PROGRAMS
        if (program := module.name.split(".")[0]) in PROGRAMS and program != rest[0]
    ]
    assert not wrong, "\n".join(wrong)


def test_libraries_stay_where_they_belong() -> None:
    """Each library is used in one room, and no SQL library where the code is pure."""
    wrong = [
        f"{where(module, node)} {module.room} imports {name}"
        for module in every_module()
        for node, name in imports(module)
        for library in [name.split(".")[0]]
        if module.room not in ONLY_IN.get(library, {module.room})
        or (library == "sqlalchemy" and module.room not in SQL_ROOMS)
    ]
    assert not wrong, "\n".join(wrong)


def test_slow_libraries_are_imported_on_first_use() -> None:
    """None of them stands at the head of a module."""
    wrong = [
        where(module, node)
        for module in every_module()
        for node, name in imports(module)
        if name.split(".")[0] in ON_FIRST_USE and node.col_offset == 0
    ]
    assert not wrong, "\n".join(wrong)


def test_doors_say_the_same_to_people_and_to_python() -> None:
    """A name that a room lets others use stands in its imports, its table and its `__all__`."""
    doors = {module.path: module for module in every_module() if calls_of("attach_modules", module)}
    assert len(doors) > 8
    for path, module in doors.items():
        (table,) = calls_of("attach_modules", module)
        said = [
            each for each in module.nodes if isinstance(each, ast.ImportFrom) and each.level == 1
        ]
        held = {each.module: [alias.name for alias in each.names] for each in said if each.module}
        names = [alias.name for each in said for alias in each.names]
        held.pop("lazy_imports", None)
        beside = {each.stem for each in path.parent.glob("*.py")}
        assert not beside & {name for names in held.values() for name in names}, "a module's name"
        assert {
            each.arg: ast.literal_eval(each.value).split() for each in table.keywords
        } == held, path
        modules = [alias.name for each in said if not each.module for alias in each.names]
        assert " ".join(map(ast.literal_eval, table.args[1:])).split() == modules, path
        listed = {*ast.literal_eval(value_of("__all__", module))}
        private = {*names} - {"attach_modules"} - listed
        assert listed <= {*names}, path
        assert not private or module.room in PUBLIC, path


def calls_of(name: str, module: Module) -> list[ast.Call]:
    """Return the calls of a function in a module."""
    calls = [each for each in module.nodes if isinstance(each, ast.Call)]
    return [each for each in calls if isinstance(each.func, ast.Name) and each.func.id == name]


def value_of(name: str, module: Module) -> ast.expr:
    """Return what a module gives a name."""
    return next(
        each.value
        for each in module.tree.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        if each.targets[0].id == name
    )


def test_files_of_tests_have_names_of_their_own() -> None:
    """Two of one name cannot be collected together."""
    named = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in named.items() if count > 1] == []


counts_tokens = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="from Python 3.12 on an f-string is many tokens"
)


def test_files_are_short() -> None:
    """A file holds one subject, however many functions that takes."""
    long = [each for each in every_module() if each.lines > LONGEST_FILE]
    assert [where(each) for each in long if GENERATED not in each.path.read_text("utf-8")] == []


@counts_tokens
def test_functions_are_small() -> None:
    """Counted in tokens, because lines only get fuller when lines are counted."""
    found = sorted(functions(), reverse=True)
    sizes = [tokens for tokens, _ in found]
    ninth = statistics.quantiles(sizes, n=10)[-1]
    print(f"{len(sizes)} functions: p90 {ninth:.0f} tokens, largest {sizes[0]}")
    assert [name for tokens, name in found if tokens > LARGEST_FUNCTION] == []
    assert ninth <= NINE_OF_TEN_FUNCTIONS, found[: len(found) // 10]


@counts_tokens
def test_lines_do_one_thing() -> None:
    """A line of many tokens has to be read twice."""
    lines = [
        (tokens, f"{where(module)[:-2]}:{line}")
        for module in every_module()
        for line, tokens in module.tokens.items()
    ]
    dense = sorted((line for line in lines if line[0] >= DENSE_LINE), reverse=True)
    share = len(dense) / len(lines)
    print(f"{len(lines)} lines of code: {100 * share:.1f} % hold {DENSE_LINE} tokens or more")
    assert share <= DENSE_SHARE, dense


def test_everything_public_is_documented() -> None:
    """Modules and public names have docstrings."""
    bare = [where(module) for module in every_module() if not ast.get_docstring(module.tree)]
    bare += [
        f"{where(module, node)} {node.name}"
        for module in every_module()
        for node in public(module)
        if not ast.get_docstring(node)
    ]
    assert not bare, "\n".join(bare)


def test_names_say_what_things_are() -> None:
    """No name is one of the words that fit everything."""
    named = [(where(module), module.path.stem) for module in every_module()]
    named += [
        (where(module, node), node.name)
        for module in every_module()
        for node in module.nodes
        if isinstance(node, Function | ast.ClassDef)
    ]
    assert [f"{place} {name}" for place, name in named if BANNED_NAMES.search(name)] == []


def test_no_stray_words() -> None:
    """Nothing in the repository names a path of one machine or the occasion on which it was
    written.
    """
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed if (ROOT / name).is_file()]
    stray = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in files
        for number, line in enumerate(
            path.read_bytes().decode("utf-8", "ignore").splitlines(), start=1
        )
        if STRAY_WORDS.search(line)
    ]
    assert files
    assert not stray, "\n".join(stray)


@pytest.mark.parametrize(
    ("text", "stray"),
    [
        ("see /" + "work/main", True),
        ("in (/" + "tmp/x)", True),
        ("the folder shared" + "/spec", True),
        ("closes issue" + " #12", True),
        ("~/network/tmp.db", False),
        ("a shared lock", False),
        ("tests/tmp/x", False),
    ],
)
def test_stray_words_are_found(text: str, stray: bool) -> None:
    """The search above finds what it should, and leaves the rest alone."""
    assert bool(STRAY_WORDS.search(text)) is stray
