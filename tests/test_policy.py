"""Policies as values: defaults, what is refused, ready ones."""

from __future__ import annotations

import os
import pickle
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pydantic
import pytest

from store import Policy, Store, StoreError
from store.errors import InvalidPolicy
from store.policy import LANGUAGE_TEXTS, POLICIES, READY_POLICY_TEXTS, load

DEFAULTS = {
    "name": "default",
    "language": "zh",
    "terminal": True,
    "terminal_keep": 5,
    "terminal_max_age": 900_000,
    "terminal_placeholder": "此命令返回内容已过时",
    "file_read": True,
    "file_read_keep": 5,
    "file_read_placeholder": "[该文件的历史读取内容已压缩,请参看最新读取结果]",
    "tool_kinds": {},
    "identity": "call",
    "errors_take_slots": False,
    "exit_code_is_error": True,
    "stderr_is_error": "always",
    "batch_rule": "all",
    "dedupe": True,
    "range_aware": False,
    "protect_current_turn": False,
    "min_saving": 0,
    "unanswered": "synthetic",
    "orphans": "adopt",
}
"""The default profile of S0 and S1."""


@pytest.mark.parametrize("field", DEFAULTS)
def test_the_defaults_are_the_default_profile(field: str) -> None:
    """Under which every stated example is true; the two texts are exact (S0.7-S0.9, S1.8, S1.9)."""
    assert getattr(Policy(), field) == DEFAULTS[field]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("terminal_kept", 5),
        ("self", 5),
        ("", 5),
        *(
            (count, value)
            for count in ("terminal_keep", "file_read_keep", "terminal_max_age", "min_saving")
            for value in (-1, 1.5, 5.0, "5", True, None, 2**62 + 1, float("inf"))
        ),
        *(
            (switch, value)
            for switch in ("terminal", "dedupe", "range_aware")
            for value in (1, 0, "yes", None)
        ),
        *(
            (choice, value)
            for choice in (
                "language",
                "identity",
                "batch_rule",
                "stderr_is_error",
                "unanswered",
                "orphans",
            )
            for value in ("", "other", True, None, 1)
        ),
        *(
            (text, value)
            for text in ("terminal_placeholder", "file_read_placeholder", "name")
            for value in (None, 5, b"bytes")
        ),
        *(("name", text) for text in ("a\0b", "\ud800")),
        *(("tool_kinds", {text: "terminal"}) for text in ("a\0b", "\ud800")),
        ("tool_kinds", {"Bash": "shell"}),
        ("tool_kinds", {"Bash": None}),
        ("tool_kinds", {5: "terminal"}),
        ("tool_kinds", ["Bash"]),
        ("tool_kinds", None),
    ],
)
def test_what_a_policy_cannot_be(field: str, value: Any) -> None:
    """A field that does not exist or a value it cannot have is refused with the field's name."""
    with pytest.raises(InvalidPolicy) as caught:
        Policy(**{field: value})
    assert field in str(caught.value)
    assert isinstance(caught.value, StoreError)
    assert isinstance(caught.value, ValueError)


def test_all_that_is_wrong_is_said_at_once() -> None:
    """Not one after the other."""
    with pytest.raises(InvalidPolicy, match=r"(?s)terminal_keep.*batch_rule.*nothing"):
        Policy(terminal_keep=-1, batch_rule="some", nothing=1)


def test_the_limits_are_values_a_database_holds(tmp_path: Any) -> None:
    """The largest of all of them at once gives a view."""
    limit = 2**62
    policy = Policy(
        terminal_keep=limit, file_read_keep=limit, terminal_max_age=limit, min_saving=limit
    )
    with Store(tmp_path / "chat.db") as store:
        store.create_session("s")
        store.append("s", {"role": "tool", "content": "x", "timestamp": 0, "name": "Bash"})
        for now in (10**11, 2**62, datetime.min.replace(tzinfo=UTC)):
            assert store.view("s", policy, now=now).stats.replaced == {"repair": 1}


def test_a_policy_does_not_change() -> None:
    """Nor when the mapping that it was made of does."""
    kinds = {"mystery": "terminal"}
    policy = Policy(tool_kinds=kinds)
    with pytest.raises(pydantic.ValidationError):
        policy.terminal_keep = 3  # type: ignore[misc]
    kinds["mystery"] = "other"
    assert policy.tool_kinds == {"mystery": "terminal"}
    assert policy == Policy(tool_kinds={"mystery": "terminal"})
    assert policy != Policy()


@pytest.mark.parametrize("value", ["x", -1, None, [1], object(), "\0", float("nan")])
def test_what_is_wrong_is_said_in_our_words(value: object) -> None:
    """Not in those of the library that looked; with the field's name."""
    for field in Policy.model_fields:
        said = ""
        try:
            Policy(**{field: value})  # type: ignore[arg-type]
        except InvalidPolicy as error:
            said = str(error)
        assert not re.search(r"Input|Value error|valid |should", said)
        assert field in said or not said


def test_ready_policies() -> None:
    """By name, with some fields changed."""
    assert Policy.named("default") == Policy()
    raw = Policy.named("raw", terminal_keep=3)
    assert (raw.name, raw.terminal, raw.file_read, raw.terminal_keep) == ("raw", False, False, 3)


@pytest.mark.parametrize("name", POLICIES)
def test_every_ready_policy_is_valid(name: str) -> None:
    """And carries its name."""
    assert Policy.named(name).name == name


def test_unknown_ready_policies_are_refused() -> None:
    """With the names there are; fields are checked as ever."""
    with pytest.raises(InvalidPolicy, match=r"'row'.*default.*raw"):
        Policy.named("row")
    with pytest.raises(InvalidPolicy, match="min_saving"):
        Policy.named("raw", min_saving=-1)


def test_a_policy_is_json_and_back() -> None:
    """So that it can be recorded with what was made by it."""
    policy = Policy.named("raw", tool_kinds={"mystery": "terminal"}, terminal_placeholder="文")
    assert Policy.model_validate_json(policy.model_dump_json()) == policy
    assert Policy(**policy.model_dump()) == policy


# --- The language of what a model reads -----------------------------------------------------------

ENGLISH = {
    "terminal_placeholder": "[Outdated output of this command]",
    "file_read_placeholder": "[Older read of this file; see the newest one]",
    "any_tool_placeholder": "[Old result, cleared]",
    "picture_placeholder": "[Not shown here: {type}, {size}]",
    "draft_notice": "[This answer was interrupted here]",
    "recall_notice": "[the tool recall shows it]",
}


def test_a_policy_speaks_english_if_it_is_told_so() -> None:
    """All that it puts into a request; the default is Chinese."""
    policy = Policy(language="en")
    assert {name: getattr(policy, name) for name in ENGLISH} == ENGLISH
    assert LANGUAGE_TEXTS["en"] == ENGLISH
    assert Policy(language="zh") == Policy()


def test_every_language_has_every_text() -> None:
    """A text that only one language has would be sent in another."""
    assert {frozenset(texts) for texts in LANGUAGE_TEXTS.values()} == {frozenset(ENGLISH)}
    assert LANGUAGE_TEXTS["zh"] == {name: Policy.model_fields[name].default for name in ENGLISH}
    for name, spoken in READY_POLICY_TEXTS.items():
        for texts in spoken.values():
            assert texts.keys() <= POLICIES[name].keys()


def test_a_given_field_stands_over_a_ready_policy_and_that_over_the_language() -> None:
    """The nearer to the caller, the stronger; a ready policy's own texts are spoken too."""
    chinese = Policy.named("message_count")
    assert chinese.summary_heading == "[对话摘要 - 早期上下文]"
    english = Policy.named("message_count", language="en", terminal_placeholder="gone")
    assert english.summary_heading == "[Summary of the earlier conversation]"
    assert english.prompt == "handoff"
    assert english.terminal_placeholder == "gone"
    assert english.file_read_placeholder == ENGLISH["file_read_placeholder"]
    given = Policy.named("message_count", language="en", summary_heading="标题")
    assert given.summary_heading == "标题"


def test_a_language_is_kept_with_the_policy() -> None:
    """Written down and read again, the texts are as they were."""
    policy = Policy(language="en", terminal_placeholder="文")
    assert Policy.model_validate_json(policy.model_dump_json()) == policy
    assert Policy(**policy.model_dump()) == policy


def test_a_file_may_name_the_language(tmp_path: Path) -> None:
    """Under its ready policy, with its own fields on top."""
    path = tmp_path / "mine.toml"
    path.write_text('base = "message_count"\nlanguage = "en"\nfile_read_placeholder = "x"\n')
    policy = load(path)
    assert (policy.name, policy.file_read_placeholder) == ("mine", "x")
    assert policy.summary_heading == "[Summary of the earlier conversation]"


def test_a_pipe_is_no_file_of_a_policy(tmp_path: Path) -> None:
    """It is refused, since it may never end, and so is a device."""
    os.mkfifo(tmp_path / "mine.toml")
    (tmp_path / "zeros.toml").symlink_to("/dev/zero")
    for name in ("mine.toml", "zeros.toml"):
        with pytest.raises(InvalidPolicy, match="may never end"):
            load(tmp_path / name)


def test_a_view_is_in_the_language_of_its_policy(store: Store) -> None:
    """What was replaced is said so."""
    session = store.create_session()
    store.append(session.id, {"role": "tool", "name": "Bash", "content": "x", "timestamp": 0})
    sent = store.view(session.id, Policy(language="en", terminal_keep=0), now=10**12).messages
    assert sent[-1]["content"] == ENGLISH["terminal_placeholder"]


@pytest.mark.parametrize(
    "field", ["terminal_placeholder", "file_read_placeholder", "summary_heading"]
)
def test_a_text_with_nul_is_refused(field: str) -> None:
    """It would be sent."""
    with pytest.raises(InvalidPolicy, match=field):
        Policy(**{field: "a\0b"})


def test_fields_of_all_groups_are_joined_in_one_order() -> None:
    """In this order a policy is written to files and records."""
    fields = [*Policy.model_fields]
    first = ["name", "terminal", "foreign_reasoning", "tool_kinds", "clearing", "context_window"]
    first += ["keep_messages", "prompt"]
    assert sorted(first, key=fields.index) == first
    assert [*Policy().model_dump()] == [*Policy.model_json_schema()["properties"]] == fields


def test_a_policy_is_pickled_under_its_public_name() -> None:
    """Pickles do not depend on the module of a group."""
    told = pickle.dumps(Policy.named("agent"), protocol=4)
    assert b"store.policy\x94" in told
    assert pickle.loads(told) == Policy.named("agent")
