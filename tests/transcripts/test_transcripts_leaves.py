"""Every text of a conversation's lines is in the store, or is named as left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts
from made_up import SAMPLES

from store import Store
from store.importing import import_file
from store.transcripts import TRANSCRIPT_KINDS, _open_source, sniff
from store.transcripts.source import SourceValue

LONG = 12
"""Code points of a text that is looked for; words have white space between them, too."""

DATE = "0123456789-: ."
"""What a moment is written with."""

LEFT_OUT: dict[str, tuple[str, ...]] = {
    "claude_code": (
        # what a tool gave the screen, told in its own shape beside the result
        *("user.toolUseResult*", "progress.data.*"),
        # waiting prompts, titles, links and notices, which are counted or of which the last counts
        *("queue-operation.content", "last-prompt.lastPrompt", "summary.summary"),
        *("ai-title.aiTitle", "system.*", "frame-link.title", "result.result.summary"),
    ),
    "stream_json": ("stream_event.event.delta.*",),
    "codex": ("event_msg.payload.*",),
    "copilot_cli": ("hook.start.data.input.*", "session.info.data.*", "session.error.data.*"),
    "gemini_takeout": (".title", ".activityControls", ".safeHtmlItem.html"),  # in other words
    "hermes": ("*.content", "*.tool_calls"),  # parts and calls as JSON, read as such
    "traces": ("*.stringValue",),  # messages as JSON, read as such by its own tests
    "moatless": (
        *(".nodes.observation.*", ".nodes.output.*"),
        *(".nodes.completions.*.input.*", ".nodes.completions.execute_action.*"),
    ),
    "exchanges": (".response.body",),  # an answer in pieces, which are put together
    "moss": (".meta_instruction", ".chat.*", ".plain_text"),  # with marks, as its own tests tell
    "aider": (".lines",),  # with marks, by which its own tests tell what aider said itself
    "opencode": (".info.title",),  # one that says that there is none
    "openhands": (".history.message", ".history.content", ".history.args.thought"),
    "swe_agent": (".trajectory.*",),
    "tau2_bench": (".messages.raw_data.*",),
    "toolbench": ("*.node_type", ".tree.*", ".compare_candidates.*", ".answer_generation.train_*"),
}
"""Kind → places of texts that its row of kinds, or a note, says are left out: of a line's type,
then the keys, a list having none.
"""


def leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield each text with words within a value, and where it is."""
    if isinstance(value, str):
        if len(value) >= LONG and " " in value.strip() and not set(value) <= set(DATE):
            yield place, value.strip()
    elif isinstance(value, dict):
        for key, held in value.items():
            yield from leaves(held, f"{place}.{key}")
    elif isinstance(value, list):
        for held in value:
            yield from leaves(held, place)


def texts(value: Any) -> Iterator[str]:
    """Yield every text within a value, keys too, and those within texts that are JSON."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            with suppress(ValueError):
                yield from texts(json.loads(value))
    elif isinstance(value, dict):
        for key, held in value.items():
            yield key
            yield from texts(held)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from texts(held)


def stored(store: Store) -> set[str]:
    """Return every text that a store has of its sessions."""
    found: set[str] = set()
    for session in store.sessions(limit=10_000):
        found.update(texts([session.title, session.metadata, session.project_root]))
        found.update(texts([each.message for each in store.messages(session.id)]))
        found.update(texts([each.summary for each in store.compactions(session.id)]))
        found.update(texts([each.value for each in store.annotations(session.id)]))
    return found


def missing(path: Path, store: Store) -> list[tuple[str, str]]:
    """Import a file; return the texts of it that neither the store has nor a table leaves out."""
    import_file(store, path, beside=True)
    known = stored(store)
    whole = "\0".join(known)
    places = LEFT_OUT.get(sniff(path), ())
    return [
        (place, text[:80])
        for item in _open_source(path).values()
        if isinstance(item, SourceValue)
        for place, text in leaves(item.value, kind_of_line(item.value))
        if text not in known
        and text not in whole
        and not any(fnmatchcase(place, each) for each in places)
    ]


def kind_of_line(value: Any) -> str:
    """Return the type of a line; of a document, nothing."""
    return str(value.get("type", "")) if isinstance(value, dict) else ""


@needs_transcripts
@pytest.mark.sampled(40)
@pytest.mark.parametrize(
    "recorded", sorted(TRANSCRIPTS.glob("*/*")), ids=lambda path: path.name[-48:]
)
def test_no_text_of_a_recorded_conversation_is_lost(recorded: Path, tmp_path: Path) -> None:
    """Whatever program recorded it."""
    if recorded.suffix == ".tsv":
        pytest.skip("it is a list of the recordings")
    with Store(tmp_path / "chat.db", durability="normal") as store:
        assert missing(recorded, store) == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", sorted(SAMPLES.keys() - {"llm"}))
def test_no_text_of_a_made_up_conversation_is_lost(kind: str, tmp_path: Path) -> None:
    """Of any kind, also of those that no recording is of."""
    path = tmp_path / "sample"
    SAMPLES[kind](path)
    with Store(tmp_path / "chat.db", durability="normal") as store:
        assert missing(next(tmp_path.glob("sample*")), store) == []


def test_what_the_table_leaves_out_is_said_where_kinds_are_described() -> None:
    """Each kind that leaves something out says what."""
    assert [kind for kind in LEFT_OUT if not TRANSCRIPT_KINDS[kind].left_out] == []
