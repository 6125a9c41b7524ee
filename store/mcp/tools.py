"""The tools: questions about past sessions, and two that add to them.

The first sentence of a tool's docstring tells a model what it is for. An argument has the same name
and meaning in every tool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from functools import partial
from itertools import chain, islice
from typing import Annotated, Any

from pydantic import Field

from ..clock import Day, parse_day
from ..errors import InvalidValue
from ..policy import Policy
from ..records import Session
from .answers import (
    KNOWN_SESSIONS,
    NOTICE,
    WHOLE_BUDGET,
    Answer,
    Page,
    PageEnd,
    Source,
    count_json_tokens,
    fill_answer_page,
    find_asked_session,
    find_projects,
    is_path_end,
    label_session,
    list_asked_sessions,
    mask_texts,
    render_moment,
    shorten,
)
from .commands import (
    SIMILAR,
    FoundError,
    PastCommand,
    describe_command,
    describe_told_error,
    find_error,
    list_commands,
    list_error_lines,
    read_result,
)
from .days import describe_day
from .passages import (
    Group,
    cut_passage,
    find_surroundings,
    get_moment,
    render_message,
    split_lines,
)
from .ranking import Ranking, Wanted, rank_groups

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
SNIPPET_TOKENS = 60


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
        chosen = _find_day(day)
        page = Page(limit, WHOLE_BUDGET)
        for found in list_asked_sessions(self._source, project, chosen, title, after):
            if not page.add(self._label(found, messages=found.head)):
                page.after = page.items[-1]["session"]
                break
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
        ranking = self._rank(text, project, session, day)
        make = partial(self._make_hit, ranking)
        page = fill_answer_page(ranking.groups, make, _name_group, PageEnd(limit, after, budget))
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
        ranking = self._rank(text, project, None, day)
        make = partial(self._make_passage, ranking)
        page = fill_answer_page(ranking.groups, make, _name_group, PageEnd(limit, after, budget))
        return self._finish("passages", page)

    def _make_passage(self, ranking: Ranking, group: Group, page: Page) -> Answer | None:
        """Return a passage in as many tokens as are left; None if these are too few for another."""
        label = self._label_group(group)
        room = min(PASSAGE_TOKENS, page.left) - count_json_tokens(label) - 8
        if page.items and room < LEAST_PASSAGE:
            return None
        return label | {"text": self._cut(group, ranking, max(room, LEAST_PASSAGE))}

    def recall(self, session: SessionName, text: Text, budget: Budget = 2_000) -> Answer:
        """Show parts of one session that its context no longer shows: behind a summary, cleared.

        Give exact names (paths, identifiers, error texts) or words.
        """
        found = find_asked_session(self._source, session)
        passages = self._source.recall(
            found.id, text, policy=RECALL_POLICY, budget=max(100, budget * 3 // 4)
        )
        page = Page(100, budget - count_json_tokens(self._label(found)))
        for each in passages:
            item = {"seq": f"{each.first}-{each.last}", "why": each.why, "text": each.text}
            if not page.add(self._clean(item)):
                break
        return self._finish("passages", page, self._label(found))

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
        label = self._label(found, messages=found.head)
        page = Page(limit, budget - count_json_tokens(label))
        for stored in self._source.messages(found.id, start, start + limit, format="openai"):
            text = self._clean(render_message(stored.message))[offset:]
            item = {"seq": stored.seq, "at": render_moment(get_moment(stored))}
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
            if path is None or is_path_end(use.path, path):
                told = uses.setdefault(use.path, {"path": use.path})
                _count_use(told, use.kind, use.seq)
        page = fill_answer_page(
            uses.values(), lambda each, _: self._clean(each), _name_path, PageEnd(limit, after)
        )
        return self._finish("files", page, self._label(found))

    def touched(
        self, path: PathName, project: Project = None, limit: Limit = 10, after: After = None
    ) -> Answer:
        """Find the sessions that read or changed a file, those that changed it first."""
        projects = find_projects(self._source, project)
        name = path.removeprefix("~/").replace("\\", "/").rstrip("/")
        hits = self._source.search(f'"{name}"', by="session", limit=MOST_WALKED)
        found = [
            self._count_uses(hit.session, name)
            for hit in hits
            if projects is None or hit.session.project_root in projects
        ]
        found = [each for each in found if each]
        found.sort(key=lambda each: ("changed" in each, each["at"]), reverse=True)
        page = fill_answer_page(found, lambda each, _: each, _name_session, PageEnd(limit, after))
        return self._finish("sessions", page)

    def _count_uses(self, session: Session, name: str) -> Answer:
        """Return a session with how often it used a file; {} if it did not."""
        told: Answer = {}
        for use in self._source.files(session.id):
            if is_path_end(use.path, name) or is_path_end(name, use.path):
                _count_use(told, use.kind, use.seq)
                told["at"] = render_moment(use.at)
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
        place, _, last = (after or "").rpartition(":")
        page = Page(limit, budget)
        words = text.lower().split() if text else []
        walked = 0
        for session_walked in self._walk_sessions(session, text, project, day, place):
            for command in list_commands(self._source, session_walked.id, failed):
                name = f"{command.record.seq}.{command.record.position}"
                is_seen = session_walked.id == place and last != ""
                if is_seen or not all(word in command.target.lower() for word in words):
                    last = "" if name == last else last
                    continue
                if not page.add(self._make_command(command)):
                    return self._finish("commands", page)
                page.after = f"{session_walked.id}:{name}"
            page.after = f"{session_walked.id}:-"
            walked += 1
        if walked < MOST_WALKED:
            page.after = None
        return self._finish("commands", page)

    def _walk_sessions(
        self,
        session: str | None,
        text: str | None,
        project: str | None,
        day: str | None,
        after: str,
    ) -> Iterator[Session]:
        """Yield the sessions in which commands are looked for, from one on, at most so many."""
        if session is not None:
            found: Iterable[Session] = [find_asked_session(self._source, session)]
        elif text is not None:
            ranking = self._rank(text, project, None, day, roles=("assistant",))
            names = dict.fromkeys(each.session_id for each in ranking.groups)
            found = map(self._source.session, names)
        else:
            begin = find_asked_session(self._source, after) if after else None
            chosen = _find_day(day)
            found = list_asked_sessions(self._source, project, chosen, after=begin and begin.id)
            found = chain([begin] if begin else [], found)
        yield from islice(found, MOST_WALKED)

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
        asked = list(dict.fromkeys(list_error_lines(text))) or [text]
        ranking = self._rank(" ".join(asked), project, None, None, roles=ERROR_ROLES)
        found = [(find_error(asked, each.text), each) for each in ranking.groups]
        alike = [each for each in found if each[0].likeness >= SIMILAR]
        alike.sort(key=lambda each: -each[0].likeness)
        end = PageEnd(limit, after, budget)
        page = fill_answer_page(alike, self._make_error, lambda each: _name_group(each[1]), end)
        return self._finish("errors", page)

    def _make_error(self, found: tuple[FoundError, Group], _: Page) -> Answer:
        """Return a failed call and what mended it, or an error told otherwise and what followed."""
        line, group = found[0].line, found[1]
        failed = self._source.calls(group.session_id, failed=True)
        for record in failed:
            if record.seq == group.first and line in read_result(group, record.position):
                return self._make_command(PastCommand(group.session_id, record))
        told: Answer = self._clean(describe_told_error(self._source, group, line))
        return self._label_group(group) | told

    def day(
        self, day: DayName = "yesterday", project: Project = None, budget: Budget = 2_000
    ) -> Answer:
        """Tell what was done on a day: by project, what was asked, changed and run."""
        chosen = parse_day(day or "yesterday", _find_today())
        told, left_out = describe_day(self._source, chosen, project, budget - 80)
        answer: Answer = {"notice": NOTICE, "day": chosen.name, "projects": self._clean(told)}
        return answer | ({"sessions_left_out": left_out} if left_out else {}) | {"after": None}

    def fork(
        self, session: SessionName, seq: Position | None = None, title: Title = None
    ) -> Answer:
        """Make a new session that continues another one from a position, which stays as it is."""
        found = find_asked_session(self._source, session)
        made = self._source.fork(found.id, seq, title=title)
        return {"notice": NOTICE} | self._label(made, messages=made.head)

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

    def _label(self, session: Session, **more: Any) -> Answer:
        label: Answer = self._clean(label_session(self._source, session))
        return label | {"at": render_moment(session.updated_at), **more}

    def _label_group(self, group: Group) -> Answer:
        label = self._label(self._source.session(group.session_id))
        place = str(group.first) if group.first == group.last else f"{group.first}-{group.last}"
        return label | {"seq": place, "at": render_moment(group.at)}

    def _rank(
        self,
        text: str,
        project: str | None,
        session: str | None,
        day: str | None,
        roles: tuple[str, ...] | None = None,
    ) -> Ranking:
        chosen = _find_day(day)
        sessions = None
        if session is not None:
            session = find_asked_session(self._source, session).id
        elif project is not None:
            found = list_asked_sessions(self._source, project)
            sessions = frozenset(each.id for each in found)
        return rank_groups(self._source, text, Wanted(session, sessions, roles, chosen))

    def _cut(self, group: Group, ranking: Ranking, tokens: int) -> str:
        text: str = self._clean(group.text)
        return cut_passage(text, ranking.weigh, tokens)

    def _make_hit(self, ranking: Ranking, group: Group, _: Page) -> Answer:
        shown = self._clean(find_surroundings(group.text, ranking.weigh))
        best = max(split_lines(shown), key=ranking.weigh)
        return self._label_group(group) | {"line": shorten(best, SNIPPET_TOKENS * 4)}

    def _tell_state(self, after: str | None) -> Answer:
        """Return the projects, and how far an import is; for the first page alone."""
        counts = Counter(each.project_root for each in self._source.sessions(limit=KNOWN_SESSIONS))
        del counts[None]
        projects = [{"project": name, "sessions": count} for name, count in counts.items()]
        told = {"projects": self._clean(projects[:50]), "import": self._describe_progress()}
        return {key: value for key, value in told.items() if value and after is None}

    def _make_command(self, command: PastCommand) -> Answer:
        label = self._label(self._source.session(command.session_id))
        told: Answer = self._clean(describe_command(self._source, command))
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


def _name_group(group: Group) -> str:
    return f"{group.session_id}:{group.first}"


def _name_path(told: Answer) -> str:
    return str(told["path"])


def _name_session(told: Answer) -> str:
    return str(told["session"])


def _parse_read_place(after: str | None) -> tuple[int, int]:
    """Return the position and the sign that a page goes on with. Raises InvalidValue."""
    seq, _, offset = (after or "1:0").partition(":")
    if not (seq.isdecimal() and offset.isdecimal()):
        raise InvalidValue("after is not what the last answer ended with; ask again without it")
    return int(seq), int(offset)


def _cut_start(text: str, tokens: int) -> str:
    """Return the beginning of a text that has at most so many tokens."""
    length = min(len(text), max(1, tokens) * 4)
    while length > 1 and count_json_tokens(text[:length]) > tokens:
        length = length * 4 // 5
    return text[:length]
