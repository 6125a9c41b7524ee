"""The tools: questions about past sessions, and two that add to them.

The first sentence of a tool's docstring tells a model what it is for. An argument has the same name
and meaning in every tool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import partial
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import Annotated, Any

from pydantic import Field

from ..clock import Day, parse_day
from ..errors import InvalidValue
from ..policy import Policy
from ..records import Session
from ..text import truncate_to_line
from ..tools import LikeError, list_error_lines
from . import answers, commands, digests, passages
from .answers import NOTICE, Answer, Page, Source, count_json_tokens, find_asked_session, mask_texts
from .commands import PastCommand
from .passages import Group
from .ranking import Ranking, rank_groups

Text = Annotated[str, Field(min_length=1, description="A question, words, names or an error text.")]
SessionName = Annotated[
    str, Field(min_length=1, description="A session's id, or a beginning that no other has.")
]
PathName = Annotated[str, Field(min_length=1, description="A file's path, or the end of it.")]
Limit = Annotated[int, Field(ge=1, le=100, description="Items at most.")]
Budget = Annotated[int, Field(ge=200, le=20_000, description="Tokens of the answer at most.")]
Position = Annotated[int, Field(ge=1, description="A position in the session, from 1.")]
Project = Annotated[
    str | None, Field(description="Only sessions of this project: its folder, or its last part.")
]
Title = Annotated[str | None, Field(description="A part of the title.")]
DayName = Annotated[
    str | None,
    Field(description="Only this day: today, yesterday, monday, 3d (days ago), 2026-03-14."),
]
Failed = Annotated[bool | None, Field(description="Only those that failed, or that did not.")]
After = Annotated[
    str | None, Field(description="What the last answer ended with, to continue after it.")
]

RECALL_POLICY = Policy.named("agent")
NOTE_KEY = "note"
ERROR_ROLES = ("tool", "function", "user")
"""Roles of messages in which errors stand."""
MOST_WALKED = 40
"""Sessions that are looked through in one call."""
PASSAGE_TOKENS = 300
"""Tokens of a passage at most, so that an answer has several."""
LEAST_PASSAGE = 60
HIT_LENGTH = 240


class History:
    """The tools on the sessions of a store, or of one owner."""

    def __init__(
        self,
        source: Source,
        *,
        secrets: bool = False,
        describe_progress: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._source = source
        self._clean: Callable[[Any], Any] = (lambda value: value) if secrets else mask_texts
        self._describe_progress = describe_progress

    def sessions(
        self,
        project: Project = None,
        title: Title = None,
        day: DayName = None,
        limit: Limit = 20,
        after: After = None,
    ) -> Answer:
        """List past sessions, the last active first, with their projects and resume commands.

        The first page counts the sessions of each project, and tells how far the import is.
        """
        found = answers.list_asked_sessions(self._source, project, _find_day(day), title, after)
        page = Page(limit).fill(found, self._label_counted, attrgetter("id"))
        return self._finish("sessions", page, self._tell_state(after))

    def search(
        self,
        text: Text,
        project: Project = None,
        session: SessionName | None = None,
        day: DayName = None,
        limit: Limit = 10,
        budget: Budget = 2_000,
        after: After = None,
    ) -> Answer:
        """Find the places in past sessions that fit a question, a line of each, the best first.

        `remember` gives whole passages, `read` all that stands around a position.
        """
        ranking = self._rank(text, project, day, session)
        make = partial(self._make_hit, ranking)
        page = Page(limit, budget, after).fill(ranking.groups, make, attrgetter("name"))
        return self._finish("hits", page)

    def remember(
        self,
        text: Text,
        project: Project = None,
        day: DayName = None,
        limit: Limit = 10,
        budget: Budget = 2_000,
        after: After = None,
    ) -> Answer:
        """Answer a question about past work by passages of all sessions, the best first.

        A passage is a message, or a call with its result, cut around the words of the question.
        """
        ranking = self._rank(text, project, day)
        page = Page(limit, budget, after)
        make = partial(self._make_passage, ranking, page)
        return self._finish("passages", page.fill(ranking.groups, make, attrgetter("name")))

    def _make_passage(self, ranking: Ranking, page: Page, group: Group) -> Answer | None:
        """Return a passage in as many tokens as are left; None if these are too few for another."""
        label = self._label_group(group)
        room = min(PASSAGE_TOKENS, page.left) - count_json_tokens(label) - 8
        if page.items and room < LEAST_PASSAGE:
            return None
        cut = partial(passages.cut_passage, group, ranking.centers[group.name], self._clean)
        return label | {"text": cut(ranking.weigh, max(room, LEAST_PASSAGE))}

    def recall(self, session: SessionName, text: Text, budget: Budget = 2_000) -> Answer:
        """Show parts of one session that its context no longer shows: behind a summary, cleared.

        Give exact names (paths, identifiers, error texts) or words.
        """
        found = find_asked_session(self._source, session)
        parts = self._source.recall(
            found.id, text, policy=RECALL_POLICY, budget=max(100, budget * 3 // 4)
        )
        label = self._label(found)
        page = Page(100, budget - count_json_tokens(label))
        for each in parts:
            item = {"seq": f"{each.first}-{each.last}", "why": each.why, "text": each.text}
            if not page.add(self._clean(item)):
                break
        return self._finish("passages", page, label)

    def read(
        self,
        session: SessionName,
        seq: Position | None = None,
        limit: Limit = 20,
        budget: Budget = 4_000,
        after: After = None,
    ) -> Answer:
        """Read a session around a position, or its end; whole messages, in order.

        A message that has no room goes on in the next page.
        """
        found = find_asked_session(self._source, session)
        start, offset = _parse_read_place(after)
        if after is None:
            start = max(1, (found.head if seq is None else seq) - limit // 2)
        label = self._label_counted(found)
        page = Page(limit, budget - count_json_tokens(label))
        for stored in self._source.messages(found.id, start, start + limit, format="openai"):
            text = self._clean(passages.render_message(stored.message))[offset:]
            at = answers.render_moment(passages.get_moment(stored))
            item = {"seq": stored.seq, "at": at}
            room = page.left - count_json_tokens(item) - 8
            shown = text if count_json_tokens(text) <= room else _cut_start(text, room)
            is_crumb = len(shown) < min(len(text), LEAST_PASSAGE)
            if page.is_full or (page.items and is_crumb):
                page.after = f"{stored.seq}:{offset}"
                break
            page.add(item | {"text": shown})
            if len(shown) < len(text):
                page.after = f"{stored.seq}:{offset + len(shown)}"
                break
            offset = 0
        return self._finish("messages", page, label)

    def files(
        self,
        session: SessionName,
        path: PathName | None = None,
        limit: Limit = 50,
        after: After = None,
    ) -> Answer:
        """List the files that a session read or changed, with how often and where last."""
        found = find_asked_session(self._source, session)
        uses: dict[str, Answer] = {}
        for use in self._source.files(found.id):
            if path is None or answers.is_path_end(use.path, path):
                told = uses.setdefault(use.path, {"path": use.path})
                _count_use(told, use.kind, use.seq)
        page = Page(limit, begin=after)
        page.fill(uses.values(), self._clean, itemgetter("path"))
        return self._finish("files", page, self._label(found))

    def touched(
        self, path: PathName, project: Project = None, limit: Limit = 10, after: After = None
    ) -> Answer:
        """Find the sessions that read or changed a file, those that changed it first."""
        projects = answers.find_projects(self._source, project)
        name = path.removeprefix("~/").replace("\\", "/").rstrip("/")
        hits = self._source.search(f'"{name}"', by="session", limit=MOST_WALKED)
        every = (hit.session for hit in hits)
        sessions = (each for each in every if projects is None or each.project_root in projects)
        found = [each for each in map(partial(self._count_uses, name), sessions) if each]
        found.sort(key=lambda each: ("changed" in each, each["at"]), reverse=True)
        page = Page(limit, begin=after)
        page.fill(found, lambda each: each, itemgetter("session"))
        return self._finish("sessions", page)

    def _count_uses(self, name: str, session: Session) -> Answer:
        """Return a session with how often it used a file; {} if it did not."""
        told: Answer = {}
        for use in self._source.files(session.id):
            if answers.is_path_end(use.path, name) or answers.is_path_end(name, use.path):
                _count_use(told, use.kind, use.seq)
                told["at"] = answers.render_moment(use.at)
        return self._label(session) | told if told else {}

    def commands(
        self,
        session: SessionName | None = None,
        text: Text | None = None,
        project: Project = None,
        day: DayName = None,
        failed: Failed = None,
        limit: Limit = 10,
        budget: Budget = 2_000,
        after: After = None,
    ) -> Answer:
        """List commands that were run, the newest first; of failed ones what mended them.

        With failed=true each has its error, what was tried after it, and what succeeded.
        """
        begin, _, last = (after or "").rpartition(":")
        sessions = self._walk_sessions(session, text, project, day, begin)
        walked = [*islice(sessions, MOST_WALKED + 1)]
        words = text.lower().split() if text else []
        found = (
            command
            for each in walked[:MOST_WALKED]
            for command in commands.list_commands(self._source, each.id, failed)
            if all(word in command.target.lower() for word in words)
        )
        page = Page(limit, budget, after if last else None)
        page.fill(found, self._make_command, attrgetter("place"))
        if page.after is None and len(walked) > MOST_WALKED:
            page.after = f"{walked[-1].id}:"
        return self._finish("commands", page)

    def _walk_sessions(
        self,
        session: str | None,
        text: str | None,
        project: str | None,
        day: str | None,
        begin: str,
    ) -> Iterator[Session]:
        """Return the sessions in which commands are looked for, from one on ("": the first)."""
        first = [find_asked_session(self._source, begin)] if begin else []
        if session is not None:
            return iter([find_asked_session(self._source, session)])
        if text is not None:
            groups = self._rank(text, project, day, roles=("assistant",)).groups
            names = [*dict.fromkeys(each.session_id for each in groups)]
            rest = names[names.index(begin) :] if begin in names else names
            return map(self._source.session, rest)
        chosen = _find_day(day)
        others = answers.list_asked_sessions(self._source, project, chosen, after=begin or None)
        return chain(first, others)

    def mended(
        self,
        text: Text,
        project: Project = None,
        limit: Limit = 5,
        budget: Budget = 2_000,
        after: After = None,
    ) -> Answer:
        """Find the same error in the past, and what was done until it was mended.

        Give the lines of the error; numbers, paths and ids in them do not count.
        """
        asked = list_error_lines(text) or [text]
        ranking = self._rank(" ".join(asked), project, roles=ERROR_ROLES)
        alike = commands.list_alike(asked, ranking.groups)
        page = Page(limit, budget, after)
        page.fill(alike, self._make_error, lambda each: each[1].name)
        return self._finish("errors", page)

    def _make_error(self, found: tuple[LikeError, Group]) -> Answer:
        """Return a failed call and what mended it, or an error told otherwise and what followed."""
        line, group = found[0].line, found[1]
        failed = self._source.calls(group.session_id, failed=True)
        for record in failed:
            if record.seq == group.first and line in commands.read_result(group, record.position):
                return self._make_command(PastCommand(group.session_id, record))
        told: Answer = self._clean(commands.describe_told_error(self._source, group, line))
        return self._label_group(group) | told

    def day(
        self, day: DayName = "yesterday", project: Project = None, budget: Budget = 2_000
    ) -> Answer:
        """Tell what was done on a day: by project, what was asked, changed and run."""
        chosen = parse_day(day or "yesterday", _find_today())
        told, left_out = digests.describe_day(self._source, chosen, project, budget - 80)
        answer: Answer = {"notice": NOTICE, "day": chosen.name, "projects": self._clean(told)}
        return answer | ({"sessions_left_out": left_out} if left_out else {}) | {"after": None}

    def fork(
        self, session: SessionName, seq: Position | None = None, title: Title = None
    ) -> Answer:
        """Make a new session that continues another one from a position, which stays as it is."""
        found = find_asked_session(self._source, session)
        made = self._source.fork(found.id, seq, title=title)
        return {"notice": NOTICE} | self._label_counted(made)

    def note(self, session: SessionName, seq: Position, text: Text) -> Answer:
        """Keep a note beside a message of a past session; a new one replaces the last."""
        found = find_asked_session(self._source, session)
        self._source.annotate(found.id, seq, NOTE_KEY, text)
        return {"session": found.id, "seq": seq, "note": text}

    def _finish(self, name: str, page: Page, label: Answer | None = None) -> Answer:
        told: Answer = {"notice": NOTICE, **(label or {})}
        progress = None if page.items else self._describe_progress()
        if progress:
            told["import"] = progress
        return told | {name: page.items, "after": page.after}

    def _label(self, session: Session, at: int | None = None) -> Answer:
        label: Answer = self._clean(answers.label_session(self._source, session))
        return label | {"at": answers.render_moment(session.updated_at if at is None else at)}

    def _label_counted(self, session: Session) -> Answer:
        return self._label(session) | {"messages": session.head}

    def _label_group(self, group: Group) -> Answer:
        place = str(group.first) if group.first == group.last else f"{group.first}-{group.last}"
        return self._label(self._source.session(group.session_id), group.at) | {"seq": place}

    def _rank(
        self,
        text: str,
        project: str | None,
        day: str | None = None,
        session: str | None = None,
        roles: tuple[str, ...] | None = None,
    ) -> Ranking:
        sessions = None
        if session is not None:
            session = find_asked_session(self._source, session).id
        elif project is not None:
            found = answers.list_asked_sessions(self._source, project)
            sessions = frozenset(each.id for each in found)
        chosen = _find_day(day)
        moments = {"since": chosen.first, "until": chosen.end - 1} if chosen else {}
        return rank_groups(self._source, text, sessions, session=session, roles=roles, **moments)

    def _make_hit(self, ranking: Ranking, group: Group) -> Answer:
        lines = passages.list_passage_lines(group.text, ranking.centers[group.name], self._clean)
        worth = ranking.weigh(lines)
        best = lines[worth.index(max(worth))]
        return self._label_group(group) | {"line": truncate_to_line(best.text, HIT_LENGTH)}

    def _tell_state(self, after: str | None) -> Answer:
        """Return the projects, and how far an import is; for the first page alone."""
        newest = self._source.sessions(limit=answers.KNOWN_SESSIONS)
        counts = Counter(each.project_root for each in newest if each.project_root is not None)
        projects = [{"project": name, "sessions": count} for name, count in counts.items()]
        told = {"projects": self._clean(projects[:50]), "import": self._describe_progress()}
        return {key: value for key, value in told.items() if value and after is None}

    def _make_command(self, command: PastCommand) -> Answer:
        label = self._label(self._source.session(command.session_id))
        told: Answer = self._clean(commands.describe_command(self._source, command))
        return label | told


def _find_today() -> date:
    return datetime.now().astimezone().date()


def _find_day(text: str | None) -> Day | None:
    return parse_day(text, _find_today()) if text else None


def _count_use(told: Answer, kind: str, seq: int) -> None:
    """Count a use of a file: a change, or a look at it."""
    key = "changed" if kind == "file_edit" else "read"
    told[key] = told.get(key, 0) + 1
    told["seq"] = seq


def _parse_read_place(after: str | None) -> tuple[int, int]:
    """Return the position and the sign that a page goes on with. Raises InvalidValue."""
    seq, _, offset = (after or "1:0").partition(":")
    if not (seq.isdecimal() and offset.isdecimal()):
        raise InvalidValue(answers.WRONG_AFTER)
    return int(seq), int(offset)


def _cut_start(text: str, tokens: int) -> str:
    """Return the beginning of a text that has at most so many tokens."""
    length = min(len(text), max(1, tokens) * 4)
    while length > 1 and count_json_tokens(text[:length]) > tokens:
        length = length * 4 // 5
    return text[:length]
