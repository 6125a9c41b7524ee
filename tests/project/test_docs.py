from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from conftest import ROOT
from pages import Page, blocks
from test_house import PUBLIC

import store
from store import context, errors, policy, records
from store.cli import demo_session
from store.context.freshness import Freshness
from store.database import schema
from store.tools.short_rules import SHORT_RULES, TOOL_RULES
from store.view import build, placeholders, rules

PEOPLES_VIEWS = (
    "session_segments",
    "session_log",
    "session_messages",
    "branch_messages",
    "tool_log",
    "file_log",
    "turn_log",
    "compaction_log",
    "hidden_messages",
    "usage_log",
)

pytestmark = pytest.mark.sqlite_only


def load_generator() -> ModuleType:
    """Import the program that writes the generated parts."""
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()
parts = importlib.import_module("parts")
PAGES = generate.PAGES
LONG = {"command"}
"""Pages whose examples take many seconds."""
EXAMPLES = [
    pytest.param(page, marks=[pytest.mark.slow] * (page.stem in LONG))
    for page in PAGES
    if page.parent.name != "adapters"  # they need their frameworks, and are run beside these
]


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder that is also the home, with no store named by the environment and a
    terminal of a usual width.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CONVOSTORE_DB", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_examples(page: Path, empty_folder: Path) -> None:
    """What a page shows runs from top to bottom, and prints what the page says.

    Queries find something.
    """
    if "import pandas" in page.read_text("utf-8"):
        pytest.importorskip("pandas")
    shown = Page(page)
    for block in blocks(page):
        printed = shown.run(block)
        if block.output is not None or block.language == "python":
            assert printed == (block.output or ""), f"{page.name}:{block.line}"


def test_generated_parts_are_fresh() -> None:
    """The parts and pictures that follow from the code are what the code says now."""
    stale = [path.name for path in generate.stale()]
    assert not stale, f"run python docs/generate.py: {stale}"


def test_every_part_has_a_place() -> None:
    """What can be generated stands on exactly one page, and nothing else is asked for."""
    asked = [
        found[2] for page in PAGES for found in generate.MARK.finditer(page.read_text("utf-8"))
    ]
    commands = [" ".join(["command", *words]) for words in parts.command.commands()]
    assert sorted(asked) == sorted([*generate.PARTS, *commands])


def test_a_stale_part_is_noticed() -> None:
    """A part that says something else is written anew, what stands around it stays."""
    page = "before\n<!-- generated: triggers -->\nold\n<!-- end -->\nafter\n"
    written = generate.filled(page)
    assert written.startswith("before\n<!-- generated: triggers -->\n\n| trigger |")
    assert written.endswith("|\n\n<!-- end -->\nafter\n")
    assert generate.filled(written) == written


def documented(*names: str) -> str:
    """Return the text of some pages."""
    return "\n".join((ROOT / name).read_text("utf-8") for name in names)


def test_every_name_of_the_library() -> None:
    """Each public name, method, record, field and error is on the page of the library."""
    text = documented("docs/api.md")
    names = {*store.__all__, *dir(store.Store), *dir(store.AsyncStore)}
    for module in (records, errors):
        classes = {
            name
            for name, each in vars(module).items()
            if getattr(each, "__module__", "") == module.__name__
        }
        names |= {name for name in classes if isinstance(vars(module)[name], type)}
    names |= {*context.__all__, *vars(Freshness), "compress"}
    names |= {
        field
        for each in (*parts.library.record_classes(), *parts.library.VALUES)
        for field in each._fields
    }
    public = {name for name in names if not name.startswith("_")}
    assert {"append", "InvalidMessage", "tokens_saved", "AsyncStore"} <= public
    assert [name for name in sorted(public) if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("place", parts.names.PUBLIC)
def test_public_names(place: str) -> None:
    """Each public module lists its names; each is there, has a docstring, and is on the page."""
    names = parts.names.public_names(place)
    name = f"store.{place}".rstrip(".")
    if place.startswith("adapters."):
        module: Any = pytest.importorskip(name, reason="needs its framework", exc_type=ImportError)
    else:
        module = importlib.import_module(name)
    assert names
    assert len(names) == len({*names})
    assert [name for name in names if not hasattr(module, name)] == []
    assert [name for name in names if not parts.names.docstring_of(place, name)] == []
    title = f"### {'.'.join(filter(None, ['store', place]))}: its names\n"
    told = documented("docs/api.md").partition(title)[2].partition("\n#")[0]
    assert [name for name in names if f"\n| `{name}` | " not in told] == []


def test_public_modules_are_those_of_the_house() -> None:
    """The page has each module that edges may import, and the public modules within these."""
    assert {place for place in parts.names.PUBLIC if "." not in place} == {"", *PUBLIC}


def test_every_rule() -> None:
    """Each field of a policy, each reason, each exact string and each ready policy is on the page
    of the rules.
    """
    text = documented("docs/rules.md")
    wanted = [
        f"`{name}`" for name in (*policy.Policy.model_fields, *policy.POLICIES, *rules.RULE_REASONS)
    ]
    wanted += [
        *(text for texts in policy.LANGUAGE_TEXTS.values() for text in texts.values()),
        *rules.RULE_REASONS.values(),
    ]
    assert [each for each in wanted if each not in text] == []
    _, said = text.split("## What an entry says")
    names = (
        *rules.RULES,
        "arguments",
        placeholders.MEDIA_RULE,
        build.DRAFT_RULE,
        "summary",
        "repair",
    )
    assert [name for name in names if f"\n| `{name}` | " not in said] == []


def test_every_short_form() -> None:
    """Each tool that has a short form of its own is on the page of the rules, with what is kept of
    its results.
    """
    text = documented("docs/rules.md")
    assert [name for name in TOOL_RULES if f"`{name}`" not in text] == []
    assert [rule.keeps for rule in SHORT_RULES.values() if rule.keeps not in text] == []


def test_every_layer() -> None:
    """The layers of a request are told in their order, and each is shown at work."""
    text = documented("docs/context.md")
    told, shown = text.partition("<!-- end -->")[::2]
    assert tuple(re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE)) == context.LAYERS
    assert [
        layer for layer in context.LAYERS if f"{layer} " not in shown and f"{layer}'" not in shown
    ] == []


def test_fields_are_explained() -> None:
    """No field of a policy is on the page without its meaning."""
    text = parts.policies.policy_fields()
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", text, re.MULTILINE)
    assert dict(rows).keys() == policy.Policy.model_fields.keys()
    assert [name for name, meaning in rows if len(meaning) < 15] == []


def test_steps_of_the_rules() -> None:
    """The page of the rules tells the steps of the judging statement, by name and in order."""
    steps = re.findall(
        r"^\| `(\w+)` \|",
        documented("docs/rules.md").partition("## One statement")[2].partition("\n## ")[0],
        re.MULTILINE,
    )
    text = rules.RESULT_VERDICTS.text("sqlite")
    named = re.findall(r"^(?:WITH )?(\w+) AS (?:NOT )?(?:MATERIALIZED )?\(", text, re.MULTILINE)
    assert len(named) > 5
    assert steps == named


def test_every_table_and_view() -> None:
    """Each table and view is on the page of the storage, and each view for people is asked at least
    three times.
    """
    page = ROOT / "docs" / "storage.md"
    text = page.read_text("utf-8")
    assert [name for name in schema.METADATA.tables if f"`{name}`" not in text] == []
    queries = ";\n".join(block.code for block in blocks(page) if block.language == "sql")
    for view in PEOPLES_VIEWS:
        asked = [query for query in queries.split(";\n") if re.search(rf"\b{view}\b", query)]
        assert len(asked) >= 3, view


def test_every_command_and_option() -> None:
    """Each command and each of its options has a help text, is on the command's page, and is shown
    in use there.
    """
    text = documented("docs/command.md")
    shown = [block.code for block in blocks(ROOT / "docs" / "command.md") if block.language == "sh"]
    for words, command in parts.command.commands().items():
        name = " ".join(["convostore", *words])
        part = text.partition(f"<!-- generated: {' '.join(['command', *words])} -->")[2].partition(
            "<!-- end -->"
        )[0]
        assert command.help, name
        for written, parameter in parts.command.options(command).items():
            assert f"`{written}`" in part, f"{name} {written}"
            assert getattr(parameter, "help", ""), f"{name} {written} has no help"
        used = re.compile(
            rf"^convostore (?:--\S+(?:[ =][^-\s]\S*)? )*{' '.join(words)}\b", re.MULTILINE
        )
        assert not words or any(map(used.search, shown)), f"no example of {name}"


def test_fields_are_in_groups() -> None:
    """Where the class has an empty line between its fields, the page has a heading."""
    begun = [
        found[1]
        for group in parts.policies.field_groups(policy.Policy)[:-1]
        for above, line in pairwise(inspect.getsource(group).splitlines())
        if not above and (found := re.match(r"    (\w+): ", line))
    ]
    assert begun == [*parts.policies.GROUPS]


def test_every_requirement() -> None:
    """Each code that a test names is in the list, and each code of the list is named by a test."""
    listed = [code for group in parts.requirements.meanings().values() for code in group]
    assert len(listed) == len({*listed}) > 200
    assert {*listed} == {*parts.requirements.tests()}


def test_codes_of_requirements_are_found() -> None:
    """One by one, and all from the first to the last of a span; a version is none."""
    group = "S2"  # apart from its number, so that this test is not taken for a proof
    assert parts.requirements.codes(f"({group}.3-{group}.5), {group}.40a; 2.41") == {
        *(f"{group}.{number}" for number in ("3", "4", "5", "40a")),
    }


def test_states_of_a_compaction() -> None:
    """The page shows the outcomes that a record may have, and no others."""
    shown = {state for change in parts.diagrams.CHANGES for state in (change.before, change.after)}
    assert shown - {"asked"} == {*get_args(records.Outcome)}


def test_pictures_are_drawn_from_runs() -> None:
    """The README's picture has the figures of the demo, and a reason for each change."""
    drawn = parts.picture.session_picture()
    with store.Store(":memory:") as opened:
        opened.create_session("demo", project_root=demo_session.DEMO_ROOT)
        opened.append("demo", demo_session.build_conversation())
        view = opened.view("demo", now=demo_session.DEMO_NOW)
    assert f"{view.stats.raw_tokens:,} tokens" in drawn
    assert f"{view.stats.tokens:,} tokens" in drawn
    changed = [entry for entry in view.entries if entry.rule in ("terminal", "file_read")]
    assert len(changed) > 5
    assert drawn.count(parts.picture.REPLACED.words) >= len(changed)
    assert {entry.reason for entry in changed} <= {*re.findall(r">([^<>]+)</text>", drawn)}


def test_paths_that_contributors_are_sent_to() -> None:
    """Each path that the page for contributors names is there."""
    text = documented("CONTRIBUTING.md")
    named = {path for path in re.findall(r"`([\w./-]+)`", text) if "/" in path or "." in path}
    assert len(named) > 15
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.stem)
def test_links(page: Path) -> None:
    """A link to a page of the project leads to it, and to a heading that is there."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, heading = target.partition("#")
        aim = (page.parent / name).resolve() if name else page
        assert aim.exists(), f"{page.name}: {target}"
        assert not heading or heading in anchors(aim), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """Return the names under which a page's headings can be linked to."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("mark", ["demo", "tests"])
def test_commands_to_paste(mark: str) -> None:
    """The two commands of the README are one line each, and work in a checkout alone."""
    text = documented("README.md")
    assert text.count(f"<!-- {mark} -->") == 1
    (line,) = text.partition(f"<!-- {mark} -->\n```sh\n")[2].partition("\n```")[0].splitlines()
    assert line.startswith("python3 -m venv .venv && .venv/bin/pip install -q ")
    assert re.findall(r"[\w-]*clone|https?:|git@|convostore(?!\sdemo)", line) == []


def test_readme_is_short() -> None:
    """The README opens with one sentence and a picture, and is read in one sitting."""
    text = documented("README.md")
    _, opening, picture, *_ = text.split("\n\n")
    assert opening.count(".") == 1
    assert opening.endswith(".")
    assert picture.startswith("![")
    assert len(text.split()) <= 900
    shown = [block.code for block in blocks(ROOT / "README.md") if block.language]
    assert shown[0].endswith("convostore demo\n")
    assert text.index("<!-- demo -->") < text.index("## ")
    assert max(len(code.splitlines()) for code in shown) <= 20
    for room in ("`search`", "`recall`", "`streaming`", "`usages`", "`format=`", "chat-app.md"):
        assert room in text


def test_the_first_view_of_the_readme_is_by_the_policy_for_agents() -> None:
    """What a call without a policy does is said beside it."""
    text = documented("README.md")
    assert "def " not in text
    calls = re.findall(r"store\.view\(([^)]*)\)", text)
    assert calls
    assert all(re.search(r"\bagent\b", call.partition(",")[2]) for call in calls)
    assert "`view` without a policy follows `Policy()`" in text


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_no_page_names_an_index_or_an_address(page: Path) -> None:
    """The package is on no index yet and has no address: it is installed from a checkout."""
    text = page.read_text("utf-8")
    assert re.findall(r"pip install [^`\n&]*convostore", text) == []
    assert re.findall(r"(?:github|gitlab|pypi)\S*/convostore|pypi\.org", text, re.IGNORECASE) == []


def test_the_project_names_no_address() -> None:
    """Until it has one."""
    project = tomllib.loads(documented("pyproject.toml"))["project"]
    assert "urls" not in project


def test_figures_of_the_readme_are_those_of_the_pages() -> None:
    """The bill by the size of a session, and how much is in sight after a clearing."""
    readme, page = documented("README.md"), documented("docs/compaction.md")
    for figure in ("0.69", "0.91", "0.87", "0.66", "1.20", "0.97", "0.73 [0.51–0.89]"):
        assert figure in readme
        assert figure in page
