"""The table of rules, the query file and the policy say the same."""

from __future__ import annotations

import logging
from typing import Any, get_args

import pytest
from conftest import ROOT
from conversations import NOW

from store import Policy, Store
from store.policy import LANGUAGE_TEXTS
from store.view.rules import (
    AGE_BORDERS,
    AGES,
    COMMON_FIELDS,
    LATER_RULES,
    RULE_QUERIES,
    RULE_REASONS,
    RULE_TABLE,
    RULES,
    WHOLE_RESULT_RULES,
    VerdictReason,
    render_explanations,
)

ROWS = (*RULE_TABLE, *LATER_RULES)
FIRST_FIELD, AFTER_LAST_FIELD = "terminal", "context_window"
NOT_JUDGED = {
    "unanswered",
    "foreign_reasoning",
    "chat_extensions",
    "cache_control",
    "show_drafts",
    "draft_notice",
}
"""Fields among those of the rules that judge no tool results."""


def fields_of_rules() -> list[str]:
    """The fields of a policy that decide what a view shows of tool results."""
    names = list(Policy.model_fields)
    return names[names.index(FIRST_FIELD) : names.index(AFTER_LAST_FIELD)]


def test_every_row_has_a_condition_and_every_condition_a_row() -> None:
    """The last row needs none: it is what is said where no condition holds."""
    assert [rule.name for rule in RULE_TABLE[:-1]] == RULE_QUERIES.names["condition"]


def test_every_reason_is_named_once() -> None:
    """The type of reasons, the rows and their texts are one list."""
    assert sorted(get_args(VerdictReason)) == sorted(rule.name for rule in ROWS)
    assert len(RULE_REASONS) == len(ROWS)
    assert render_explanations(Policy()).keys() == RULE_REASONS.keys()


def test_every_field_is_asked_by_a_row_and_every_row_asks_fields_that_exist() -> None:
    """So no switch of a policy is without a rule, and no rule asks for what nobody can set."""
    asked = {name for rule in ROWS for name in rule.fields} | {*COMMON_FIELDS}
    assert asked | NOT_JUDGED == {*fields_of_rules()}


def test_a_rule_is_a_switch_of_the_policy_by_its_name() -> None:
    """What does something can be switched off; what replaces has a text in every language."""
    assert tuple(rule.name for rule in RULE_TABLE if rule.does != "keeps") == RULES
    for name in RULES:
        assert Policy.model_fields[name].annotation is bool
    for name in WHOLE_RESULT_RULES:
        assert all(texts[f"{name}_placeholder"] for texts in LANGUAGE_TEXTS.values())


def test_rows_that_do_something_are_logged_in_every_language() -> None:
    """With a place for how many there are."""
    for rule in RULE_TABLE:
        assert (rule.log is not None) == (rule.does != "keeps")
        if rule.log:
            assert rule.log.keys() == LANGUAGE_TEXTS.keys()
            assert all("%d" in text for text in rule.log.values())


@pytest.mark.parametrize(
    "field", ["terminal_max_age", "errors_take_slots", "file_read_placeholder"]
)
def test_a_field_of_a_rule_is_known_in_three_files(field: str) -> None:
    """The policy that has it, the table, and the query file: to add a rule touches no other.

    The command has options for some, every language has texts.
    """
    package = ROOT / "store"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.suffix in (".py", ".sql") and field in path.read_text(encoding="utf-8")
    }
    groups = {each for each in found if each.startswith("policy/")}
    assert len(groups) == 1
    assert found - {"cli/options.py", "phrases.py"} <= {
        *groups,
        "view/rules.py",
        "view/rules.sql",
    }


def test_an_age_follows_from_the_row_of_its_rule() -> None:
    """No other module names the ages: their moments, minutes and results are those of the rows."""
    assert AGE_BORDERS["terminal_before"] == AGES["terminal"] == "terminal_max_age"
    assert all(f"{name}_young" in RULE_QUERIES.names["part"] for name in AGES)
    texts = render_explanations(Policy(terminal_max_age=90_000))
    assert texts["young"] == "not over 1.5 minutes old"


@pytest.mark.parametrize(
    ("language", "fields", "text"),
    [
        (None, {}, "精简了 1 个过时命令返回内容"),
        ("zh", {"language": "en"}, "精简了 1 个过时命令返回内容"),
        ("en", {"language": "zh"}, "replaced 1 outdated outputs of commands"),
        ("tlh", {}, "精简了 1 个过时命令返回内容"),
        (None, {"language": "en"}, "replaced 1 outdated outputs of commands"),
        (
            None,
            {"terminal": False, "any_tool": True, "clear_keep": 0},
            "cleared 1 old tool results",
        ),
        (
            None,
            {"terminal": False, "any_tool": True, "clear_keep": 0, "language": "zh"},
            "清除了 1 个旧的工具返回内容",
        ),
    ],
)
def test_the_language_of_log_lines_is_asked_for_or_demanded(
    store: Store,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    language: str | None,
    fields: dict[str, Any],
    text: str,
) -> None:
    """By the environment, else by the policy; S0.29 demands Chinese, nothing else does here."""
    if language is None:
        monkeypatch.delenv("CONVOSTORE_LANGUAGE", raising=False)
    else:
        monkeypatch.setenv("CONVOSTORE_LANGUAGE", language)
    session = store.create_session()
    output = {"role": "tool", "name": "Bash", "content": "x " * 999, "timestamp": 0}
    store.append(session.id, [output, {"role": "assistant", "content": "seen"}])
    with caplog.at_level(logging.INFO, logger="store.view.build"):
        store.view(session.id, Policy(terminal_keep=0, **fields), now=NOW)
    assert [record.getMessage() for record in caplog.records] == [text]
