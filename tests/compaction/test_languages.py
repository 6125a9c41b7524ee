"""One language a request: what the store says itself, in all formats, by all ready policies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from store import Policy, Store
from store.formats import FORMATS
from store.phrases import PHRASES, REQUIRED
from store.policy import POLICIES
from store.summaries import SummaryRequest, extractive

NOW = 1_767_225_600_000
MINUTE = 60_000

WORDS = {
    "zh": {
        "system": "你是细心的工程师。",
        "ask": "第{0}项请检查",
        "say": "我来看看",
        "out": "输出内容" * 60 + "\n" + "更多内容\n" * 60 + "完成",
        "err": "找不到模块",
        "done": "第{0}项完成",
        "todo": "整理代码",
        "dir": "目录",
        "command": "构建",
    },
    "en": {
        "system": "You are a careful engineer.",
        "ask": "check item {0}, please",
        "say": "let me look",
        "out": "some output " * 60 + "\n" + "more of it\n" * 60 + "built",
        "err": "no such module",
        "done": "item {0} is done",
        "todo": "tidy up",
        "dir": "src",
        "command": "make all",
    },
}


def _call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": call_id, "type": "function", "function": function}


def _output(text: str, code: int) -> str:
    return json.dumps({"stdout": text, "stderr": "", "exitCode": code}, ensure_ascii=False)


def _turn(number: int, words: dict[str, str]) -> list[dict[str, Any]]:
    """Return a turn in which every tool is used, fails, is never answered, or answers nothing."""
    at = NOW + number * MINUTE
    file = f"{words['dir']}/{number}.x"
    calls = [
        _call(f"a{number}", "Bash", command=f"{words['command']} {number}"),
        _call(f"b{number}", "Read", file_path=file),
        _call(f"c{number}", "Edit", file_path=file, old_string="0", new_string="1" * 200),
        _call(f"d{number}", "Grep", pattern=words["todo"]),
        _call(f"e{number}", "TodoWrite", todos=_todos(words)),
        _call(f"f{number}", "Bash", command=words["command"]),
        _call("repeated", "mcp", query=words["todo"]),
    ]
    answers = {
        "a": _output(words["out"], 0),
        "b": words["out"],
        "c": words["done"].format(number),
        "d": words["out"],
        "e": json.dumps({"todos": _todos(words)}, ensure_ascii=False),
        "f": _output(words["err"], 2),
    }
    results = [
        {"role": "tool", "tool_call_id": f"{key}{number}", "content": text, "timestamp": at}
        for key, text in answers.items()
    ]
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400}}
    lone = {"role": "tool", "tool_call_id": f"lone{number}", "content": words["out"]}
    shown = {"role": "tool", "tool_call_id": f"seen{number}", "content": [picture]}
    return [
        {"role": "user", "content": words["ask"].format(number), "timestamp": at},
        {"role": "assistant", "content": words["say"], "tool_calls": calls, "timestamp": at},
        *results,
        {**lone, "timestamp": at},
        {**shown, "timestamp": at},
        {"role": "assistant", "content": words["done"].format(number), "timestamp": at},
    ]


def _todos(words: dict[str, str]) -> list[dict[str, str]]:
    states = ("completed", "in_progress", *("pending",) * 8)
    return [{"content": words["todo"], "status": state} for state in states]


def _failing(_: SummaryRequest) -> str:
    raise ConnectionError


def _empty(_: SummaryRequest) -> str:
    return ""


def _wrapped(request: SummaryRequest) -> Any:
    return extractive(request)


class _Asking:
    """A summarizer that notes what it is asked, and answers in the language of the talk."""

    def __init__(self, words: dict[str, str]) -> None:
        self.prompts: list[str] = []
        self._words = words

    def __call__(self, request: SummaryRequest) -> str:
        self.prompts.append(request.prompt)
        return self._words["done"].format(0)


def _requests(
    store: Store, policy: Policy, words: dict[str, str], summarizer: Any
) -> Iterator[Any]:
    """Yield all that is sent over a talk, in every format, and what is recorded of it."""
    session = store.create_session(now=NOW).id
    first = {"role": "assistant", "content": words["done"].format(0), "timestamp": NOW}
    store.append(session, first, now=NOW)
    for number in range(1, 14):
        now = NOW + number * MINUTE
        store.append(session, _turn(number, words), now=now)
        made = store.compact_if_needed(session, policy, summarizer, max_tokens=6_000, now=now)
        if made:
            yield made.summary, made.key_actions, made.title
            if policy.language == "en":  # Errors are for the host, and English.
                yield made.error, made.problem and made.problem.response()
        if number % 6 == 1:
            for name in (name for name in FORMATS if name != "react"):
                view = store.view(session, policy, now=now, format=name)
                yield view.messages, view.system
            yield store.view(session, policy, now=now, format="react").messages
            recap = store.context(
                session, system=words["system"], policy=policy, user_input=words["say"], now=now
            )
            yield recap.messages, recap.text
    made = store.compact(session, policy, summarizer, now=NOW + 20 * MINUTE)
    yield made.summary, made.key_actions, made.title
    yield store.view(session, policy, now=NOW + 20 * MINUTE).messages


def _policies(language: str) -> Iterator[Any]:
    for name in POLICIES:
        recalls = {"recall": True, "told_once": True} if name != "default" else {}
        yield pytest.param(
            Policy.named(name, language=language, index_chars=200, **recalls), id=name
        )


SUMMARIZERS = [None, _wrapped, _failing, _empty]
NAMES = re.compile(
    r"Bash|Read|Edit|Grep|TodoWrite|mcp|recall|unknown_tool|repeated(?:-\d+)?|[a-f]\d+|lone\d+|seen\d+"
    r"|\d+\.x|image/png|in_progress|kB|\bLLM\b|system|developer|user|assistant|tool|function\w*|LLM"
)
"""Names: of tools, ids, files, media types, states, roles and tags."""
KEYS = re.compile(r'"\w+":|"(?:completed|in_progress|pending)"|\\[nu]')
"""Keys and states of JSON that a tool said, or was asked with."""
DATA = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]*")
"""Pictures that are sent."""


NO_WORDS = frozenset(
    [
        "id",
        "type",
        "status",
        "role",
        "name",
        "call_id",
        "tool_call_id",
        "url",
        "data",
        "detail",
        "thoughtSignature",
        "sessionId",
    ]
)
"""Keys whose texts are no words."""


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts that are sent, but for ids, types and signatures."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in NO_WORDS:
                yield from _strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)


def _latin(text: str) -> str:
    """Return what of a text is Latin words, names and what is required aside."""
    for required in REQUIRED.values():
        pattern = re.sub(r"\\\{\w+\\\}", ".*?", re.escape(required.text))
        text = re.sub(rf"{pattern}", " ", text) if "{" not in required.text else text
    text = re.sub(r"from [\d: -]+ to [\d: -]+", " ", text)
    text = re.sub(r"\((?:created|modified|deleted)\)", " ", text)
    left = NAMES.sub(" ", KEYS.sub(" ", DATA.sub(" ", text)))
    return " ".join(re.findall(r"[A-Za-z]{2,}", left))


@pytest.mark.slow
@pytest.mark.sampled(40)
@pytest.mark.parametrize("summarizer", SUMMARIZERS)
@pytest.mark.parametrize("policy", [*_policies("zh")])
def test_a_chinese_request_has_no_latin_words_but_names_and_what_is_required(
    store: Store, policy: Policy, summarizer: Any
) -> None:
    """Views, contexts, summaries, repairs, openings, short forms and cleared lines."""
    for sent in _requests(store, policy, WORDS["zh"], summarizer):
        for text in _strings(sent):
            for line in text.splitlines():
                assert _latin(line) == "", line


@pytest.mark.sampled(40)
@pytest.mark.parametrize("summarizer", SUMMARIZERS)
@pytest.mark.parametrize("policy", [*_policies("en")])
def test_an_english_request_of_ascii_is_ascii(
    store: Store, policy: Policy, summarizer: Any
) -> None:
    """So are the records of compactions, and what failures answer."""
    for sent in _requests(store, policy, WORDS["en"], summarizer):
        for text in _strings(sent):
            assert text.isascii(), text


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", POLICIES)
def test_an_english_prompt_of_ascii_is_ascii(store: Store, name: str) -> None:
    """But for the headings of an archive, which are required (S4.29)."""
    asking = _Asking(WORDS["en"])
    policy = Policy.named(name, language="en", keep_messages=0, trigger_messages=8)
    list(_requests(store, policy, WORDS["en"], asking))
    assert asking.prompts
    for prompt in asking.prompts:
        lines = [line for line in prompt.splitlines() if not re.match(r"##+ |\* \[✓\]", line)]
        assert "\n".join(lines).isascii()


def test_a_chinese_prompt_says_in_chinese_what_is_missing(store: Store) -> None:
    """No earlier summary: one language."""
    asking = _Asking(WORDS["zh"])
    list(_requests(store, Policy.named("message_count"), WORDS["zh"], asking))
    assert "（无）" in asking.prompts[0]
    assert "none" not in asking.prompts[0]


def test_every_phrase_is_there_in_both_languages() -> None:
    """English ones are ASCII, Chinese ones have no Latin words; both have the same places."""
    place = re.compile(r"\{\w+\}")
    for code, texts in PHRASES.items():
        assert texts.keys() == {"zh", "en"}, code
        assert texts["en"].isascii(), code
        chinese = place.sub("", texts["zh"])
        assert not re.search("[A-Za-z]{2}", chinese.replace("LLM", "").replace("recall", "")), code
        assert sorted(place.findall(texts["zh"])) == sorted(place.findall(texts["en"])), code


def test_what_is_required_names_its_requirement() -> None:
    """A code of the first requirements each."""
    for required in REQUIRED.values():
        assert re.fullmatch(r"S\d\.\d+\w?(, S\d\.\d+\w?)*", required.codes)


def test_the_ready_policies_speak_the_language_that_they_spoke() -> None:
    """Chinese, but for those for agents."""
    spoken = {name: Policy.named(name).language for name in POLICIES}
    english = {name for name, language in spoken.items() if language == "en"}
    assert english == {"agent", "frugal", "paged"}
