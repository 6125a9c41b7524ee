"""``python -m benchmarks.asking FOLDER``: what agents find in their past.

Sixty questions of a developer are made from recorded sessions by a seed: which file, which command,
which error, which decision, which day. Each is made of words that stand in one place of one
session, in a sentence, and knows the session and the text that answer it: any session that has the
text is right. Each is asked once: by the tools ``remember`` and ``search`` of the MCP server, by
BM25 over the same messages, and by ``grep`` for the words. Counted are questions whose right
session comes first, is among the first three, and whose answer of 2,000 tokens has the text.

Returns 1 where ``remember`` has less than 85 %, 95 % and 85 %. Another folder, such as one that was
kept aside, is asked by the same program.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client

from store import Session, Store, StoreError
from store.exporting import mask
from store.importing import import_file
from store.mcp import build_server
from store.tokens import counter, message_text

SEED, QUESTIONS = 32, 60
BUDGET = 2_000
TARGETS = (0.85, 0.95, 0.85)
"""The shares of questions: the right session first, among three, the text in the answer."""
PROGRAMS = """
claude_code codex copilot_cli pi gemini_cli qwen_code opencode cursor droid goose kiro openhands
aider stream_json cline vscode_chat
"""
"""Programs of developers, whose sessions are asked about; all others are only searched."""
LEAST_MESSAGES = 6
NEEDED_LENGTH = 60
"""Signs of a text that has to be in an answer."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{3,}")
_NUMBER = re.compile(r"\d+")
_PATH = re.compile(r"(?:[\w.@~-]*/)+[\w.@-]*")
_DECISION = re.compile(
    r"(?i)\b(instead|because|decided?|should|root cause|the fix|so that|rather than|reason)\b"
)
_ERROR = re.compile(
    r"(?i)\b(error|failed|fatal|cannot|not found|no such|undefined|denied|invalid)\b"
)
COMMON_WORDS = """
about after also because been before being could does done from have here instead into just like
make more need only other over should some that them then there these they this when where which
while will with without would your better reason decided
"""


class Question(NamedTuple):
    """A question, its kind, the text that answers it, and the sessions that have the text."""

    kind: str
    text: str
    needed: str
    sessions: frozenset[str]


class Place(NamedTuple):
    """A message of a session, in the chat format, with its text and its time (ms)."""

    session: Session
    seq: int
    message: dict[str, Any]
    text: str
    at: int


class Found(NamedTuple):
    """What an asked tool answers: sessions in their order, and the text of its answer."""

    sessions: list[str]
    answer: str


class Corpus:
    """All messages of a store, those of programs of developers apart."""

    def __init__(self, store: Store) -> None:
        self.places = [
            Place(
                session,
                each.seq,
                each.message,
                mask(message_text(each.message)).text,
                _time_of(each),
            )
            for session in store.sessions(limit=1_000)
            for each in store.messages(session.id, format="openai")
        ]
        self.asked = [
            place
            for place in self.places
            if place.session.source in PROGRAMS.split() and place.session.head >= LEAST_MESSAGES
        ]

    def having(self, needed: str) -> frozenset[str]:
        """Return the sessions that have a text in a message."""
        plain = squeeze(needed)
        return frozenset(place.session.id for place in self.places if plain in squeeze(place.text))


def squeeze(text: str) -> str:
    """Return a text without what JSON, line ends and quotes add to it, to compare by."""
    return re.sub(r"[\W_]+", "", text.replace("\\n", " ").replace("\\t", " ")).lower()


def _time_of(stored: Any) -> int:
    told = stored.message.get("timestamp")
    return told if isinstance(told, int) else stored.stored_at


def make_questions(corpus: Corpus, wanted: int, seed: int) -> list[Question]:
    """Return so many questions, of each kind as many, in an order that the seed decides."""
    chance = random.Random(seed)
    made: dict[str, list[Question]] = {kind: [] for kind in KINDS}
    each = -(-wanted // len(KINDS))
    for kind, make in KINDS.items():
        places = [*corpus.asked]
        chance.shuffle(places)
        asked_of: Counter[str] = Counter()
        for place in places:
            if len(made[kind]) >= each or asked_of[place.session.id] > 1:
                continue
            question = make(corpus, place, chance)
            if question is not None and question.sessions:  # its words may be masked
                asked_of[place.session.id] += 1
                made[kind].append(question)
    return [question for kind in KINDS for question in made[kind]][:wanted]


def about_file(corpus: Corpus, place: Place, chance: random.Random) -> Question | None:
    """Ask for the file of an edit by three names of what was written into it."""
    for name, fields in calls_of(place):
        path = next((fields[key] for key in ("file_path", "path") if key in fields), None)
        written = next(
            (
                fields[k]
                for k in ("new_string", "new_str", "newText", "content", "file_text")
                if k in fields
            ),
            "",
        )
        if name.lower() in ("read", "view") or not isinstance(path, str) or not written:
            continue
        words = pick(chance, str(written), 3, besides=path)
        if words:
            needed = path.rsplit("/", 1)[-1]
            text = f"Which file did we change for {words[0]}, {words[1]} and {words[2]}?"
            return Question("file", text, needed, _having_words(corpus, words, needed))
    return None


def about_command(corpus: Corpus, place: Place, chance: random.Random) -> Question | None:
    """Ask for a command by what it was described as, otherwise by three of its words."""
    for _, fields in calls_of(place):
        command = fields.get("command") or fields.get("cmd")
        if not isinstance(command, str) or len(command) < 15:
            continue
        described = fields.get("description")
        words = pick(chance, command, 3)
        if isinstance(described, str) and len(described.split()) > 2:
            text = f"Which command did we run to {described[0].lower()}{described[1:]}?"
        elif words:
            text = f"What was the command with {', '.join(words)}?"
        else:
            continue
        needed = mask(command).text.split("\n")[0][:NEEDED_LENGTH]
        return Question("command", text, needed, corpus.having(needed))
    return None


def about_error(corpus: Corpus, place: Place, chance: random.Random) -> Question | None:
    """Ask how an error was mended, by its line with other numbers and without folders."""
    if place.message.get("role") != "tool":
        return None
    lines = [line.strip() for line in place.text.splitlines() if _ERROR.search(line)]
    lines = [line for line in lines if 20 < len(line) < 200 and len(words_of(line)) > 3]
    if not lines:
        return None
    line = chance.choice(lines[:5])
    told = _PATH.sub(lambda found: found[0].rsplit("/", 1)[-1], line)
    told = _NUMBER.sub(lambda found: str(chance.randrange(10 ** len(found[0][:4]))), told)
    needed = line[:NEEDED_LENGTH]
    return Question("error", f"How did we fix this: {told}", needed, corpus.having(needed))


def about_decision(corpus: Corpus, place: Place, chance: random.Random) -> Question | None:
    """Ask why, by five words of a sentence of the assistant that gives a reason."""
    content = place.message.get("content")
    if place.message.get("role") != "assistant" or not isinstance(content, str):
        return None
    sentences = re.split(r"(?<=[.!?])\s+|\n+", content)
    telling = [each for each in sentences if _DECISION.search(each) and 50 < len(each) < 300]
    if not telling:
        return None
    sentence = chance.choice(telling)
    words = pick(chance, sentence, 5)
    if not words:
        return None
    needed = mask(sentence).text[:NEEDED_LENGTH]
    text = f"What did we decide about {' '.join(words)}, and why?"
    return Question("decision", text, needed, corpus.having(needed))


def about_day(corpus: Corpus, place: Place, chance: random.Random) -> Question | None:
    """Ask for the day by five words of what the user asked for."""
    content = place.message.get("content")
    if place.message.get("role") != "user" or not isinstance(content, str):
        return None
    words = pick(chance, content[:2_000], 5)
    if not words:
        return None
    day = datetime.fromtimestamp(place.at / 1000).astimezone().strftime("%Y-%m-%d")
    text = f"On which day did I ask about {' '.join(words)}?"
    return Question("day", text, day, _having_words(corpus, words, ""))


KINDS: dict[str, Callable[[Corpus, Place, random.Random], Question | None]] = {
    "file": about_file,
    "command": about_command,
    "error": about_error,
    "decision": about_decision,
    "day": about_day,
}


def calls_of(place: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls of a message: the name and the arguments, if they are an object."""
    for call in place.message.get("tool_calls") or ():
        function = call.get("function") or {}
        with suppress(ValueError, TypeError):
            fields = json.loads(function.get("arguments") or "{}")
            if isinstance(fields, dict):
                yield str(function.get("name")), fields


def words_of(text: str) -> list[str]:
    """Return the different words of a text that say what it is about."""
    found = dict.fromkeys(_NAME.findall(text))
    return [word for word in found if word.lower() not in COMMON_WORDS.split()]


def pick(chance: random.Random, text: str, count: int, besides: str = "") -> list[str]:
    """Return some words of a text, in their order; [] if it has too few."""
    words = [word for word in words_of(text) if word.lower() not in besides.lower()]
    if len(words) < count:
        return []
    chosen = {*chance.sample(words, count)}
    return [word for word in words if word in chosen]


def _having_words(corpus: Corpus, words: list[str], needed: str) -> frozenset[str]:
    """Return the sessions with a message that has all words, and the text."""
    wanted = [*map(squeeze, words), squeeze(needed)]
    texts = ((place.session.id, squeeze(place.text)) for place in corpus.places)
    return frozenset(each for each, text in texts if all(word in text for word in wanted))


class Bm25:
    """BM25 over all messages, as written down by Robertson; the best messages fill the answer."""

    def __init__(self, corpus: Corpus) -> None:
        self._places = corpus.places
        self._counts = [Counter(tokens_of(place.text)) for place in corpus.places]
        self._lengths = [sum(each.values()) for each in self._counts]
        self._usual = sum(self._lengths) / max(1, len(self._lengths))
        self._having = Counter(word for each in self._counts for word in each)

    def ask(self, question: str) -> Found:
        """Return the sessions of the best messages, and as much of these as fits."""
        words = {*tokens_of(question)} - {*COMMON_WORDS.split()}
        total = len(self._places)
        scores: dict[int, float] = defaultdict(float)
        for word in words:
            having = self._having[word]
            worth = math.log(1 + (total - having + 0.5) / (having + 0.5))
            for at, counts in enumerate(self._counts):
                if count := counts[word]:
                    length = 0.25 + 0.75 * self._lengths[at] / self._usual
                    scores[at] += worth * count * 2.2 / (count + 1.2 * length)
        best = sorted(scores, key=lambda at: -scores[at])[:50]
        return fill([self._places[at] for at in best], [self._places[at].text for at in best])


class Grep:
    """``grep`` for each word: the sessions with most of the words, then with most lines."""

    def __init__(self, corpus: Corpus) -> None:
        self._places = corpus.places

    def ask(self, question: str) -> Found:
        """Return the sessions, and the lines that match."""
        words = {*tokens_of(question)} - {*COMMON_WORDS.split()}
        lines: dict[str, list[str]] = defaultdict(list)
        had: dict[str, set[str]] = defaultdict(set)
        for place in self._places:
            for line in place.text.splitlines():
                found = words & {*tokens_of(line)}
                if found:
                    had[place.session.id] |= found
                    lines[place.session.id].append(line[:300])
        order = sorted(had, key=lambda each: (-len(had[each]), -len(lines[each])))
        text = "\n".join(line for each in order[:10] for line in lines[each][:40])
        return Found(order, cut(text))


def tokens_of(text: str) -> list[str]:
    """Return the words of a text, in small letters."""
    return re.findall(r"[^\W_]+", text.lower())


def fill(places: list[Place], texts: list[str]) -> Found:
    """Return the sessions of some messages, and as much of their texts as fits, each cut."""
    stamped = (
        f"{datetime.fromtimestamp(place.at / 1000).astimezone():%Y-%m-%d} {text[:1_500]}"
        for place, text in zip(places, texts, strict=True)
    )
    return Found([*dict.fromkeys(place.session.id for place in places)], cut("\n".join(stamped)))


def cut(text: str) -> str:
    """Return the beginning of a text that has at most 2,000 tokens."""
    text = text[: BUDGET * 6]
    while counter().count(text) > BUDGET:
        text = text[: len(text) * 9 // 10]
    return text


class Tool:
    """A tool of the server, called by the official client."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name

    def ask(self, question: str) -> Found:
        """Return the sessions of the answer and its text."""
        told = asyncio.run(self._call(question))
        assert counter().count(told) <= BUDGET, (self._name, question, counter().count(told))
        found = next(value for value in json.loads(told).values() if isinstance(value, list))
        return Found([*dict.fromkeys(each["session"] for each in found)], told)

    async def _call(self, question: str) -> str:
        async with Client(build_server(self._store)) as client:
            result = await client.call_tool(self._name, {"text": question, "budget": BUDGET})
            return str(getattr(result.content[0], "text", ""))


def measure(asked: Sequence[Question], ask: Callable[[str], Found]) -> list[tuple[bool, ...]]:
    """Return for each question: the right session first, among three, the text in the answer."""
    results = []
    for question in asked:
        found = ask(question.text)
        first, three = found.sessions[:1], found.sessions[:3]
        has_text = squeeze(question.needed) in squeeze(found.answer)
        results.append(
            (
                any(each in question.sessions for each in first),
                any(each in question.sessions for each in three),
                has_text and any(each in question.sessions for each in found.sessions),
            )
        )
    return results


def load_store(path: Path, folder: Path) -> Store:
    """Return a store with all sessions below a folder that can be read."""
    store = Store(path, durability="normal")
    for file in sorted(each for each in folder.rglob("*") if each.is_file()):
        with suppress(StoreError):
            import_file(store, file)
    store.index()
    return store


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where ``remember`` misses a target."""
    options = _options(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="asking-") as folder,
        load_store(Path(folder, "asked.db"), options.folder) as store,
    ):
        corpus = Corpus(store)
        asked = make_questions(corpus, options.questions, options.seed)
        askers: dict[str, Callable[[str], Found]] = {
            "remember": Tool(store, "remember").ask,
            "search": Tool(store, "search").ask,
            "bm25": Bm25(corpus).ask,
            "grep": Grep(corpus).ask,
        }
        measured = {name: measure(asked, ask) for name, ask in askers.items()}
        _print(asked, measured, options)
    shares = [sum(column) / len(asked) for column in zip(*measured["remember"], strict=True)]
    return int(any(share < target for share, target in zip(shares, TARGETS, strict=True)))


def _print(
    asked: list[Question], measured: dict[str, list[tuple[bool, ...]]], options: argparse.Namespace
) -> None:
    print(f"{len(asked)} questions, seed {options.seed}")
    print(f"{'':10} {'first':>8} {'of three':>8} {'text':>8}")
    for name, results in measured.items():
        shares = [100 * sum(column) / len(asked) for column in zip(*results, strict=True)]
        print(f"{name:10}", *(f"{share:7.1f}%" for share in shares))
    if options.misses:
        for question, result in zip(asked, measured["remember"], strict=True):
            if not all(result):
                print(question.kind, result, question.text, "|", question.needed)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asking", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder of recorded sessions")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--misses", action="store_true", help="print what was not found")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
