"""The list of sessions, and the sessions that a search finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from markupsafe import Markup, escape

from .. import InvalidValue, SessionNotFound
from ..records import Hit, Session, SessionHit
from .site import Values, Visit, page

LISTED_SESSIONS = 50
MOST_FOUND = 100
"""Sessions that a search looks at, before they are chosen by project and program."""


class ListedSession(NamedTuple):
    """A session with its title, what its requests cost, and what was found in it."""

    session: Session
    title: str
    cost: float | None
    found: SessionHit | None


@page("/", "sessions.html")
def show_sessions(visit: Visit) -> Values:
    """Return the sessions that were last active, or those with the words of a search."""
    if visit.get("q"):
        found = islice(_search_sessions(visit), LISTED_SESSIONS)
        rows = [_load_listed_session(visit, hit.session, hit) for hit in found]
        return {"rows": rows, "next": None, "mark_words": mark_words}
    sessions = _load_sessions(visit)
    rows = [_load_listed_session(visit, each) for each in sessions[:LISTED_SESSIONS]]
    last = rows[-1].session if len(sessions) > LISTED_SESSIONS else None
    return {"rows": rows, "next": last and f"{last.updated_at}.{last.id}"}


def _load_sessions(visit: Visit) -> list[Session]:
    """Return the sessions of a page, and one more if there are more."""
    return visit.face.sessions(
        limit=LISTED_SESSIONS + 1,
        after=_parse_place(visit.get("after")),
        project=visit.get("project") or None,
        source=visit.get("source") or None,
        since=visit.moment("since"),
        until=visit.moment("until", days=1),
        parents=not visit.get("subagents"),
    )


def _parse_place(text: str) -> Session | None:
    """Return a session as the last page listed it, by which the list goes on behind it."""
    if not text:
        return None
    moment, _, session_id = text.partition(".")
    if not moment.lstrip("-").isdecimal() or len(moment) > 18:
        raise InvalidValue("the place in the list is not one of these pages")
    at = int(moment)
    return Session(session_id, None, 0, None, {}, at, at, None, None, 0, "", None, archived=False)


def _search_sessions(visit: Visit) -> Iterator[SessionHit]:
    """Yield the sessions with the words of a search, in a project and of a program."""
    project, source = visit.get("project").rstrip("/"), visit.get("source")
    since, until = visit.moment("since"), visit.moment("until", days=1)
    for hit in visit.face.search(
        visit.get("q"), by="session", limit=MOST_FOUND, since=since, until=until
    ):
        folder = f"{hit.session.project_root or ''}/"
        if folder.startswith(f"{project}/" if project else "") and (
            not source or hit.session.source == source
        ):
            yield hit


def _load_listed_session(
    visit: Visit, session: Session, found: SessionHit | None = None
) -> ListedSession:
    title, spent = session.title, None
    with suppress(SessionNotFound):  # erased meanwhile
        title = title or visit.face.title(session.id)
        spent = visit.sum_costs(session.id)
    return ListedSession(session, title or session.id, spent, found)


def mark_words(hit: Hit) -> Markup:
    """Return the line of a hit, escaped, with its words marked."""
    shown, last = Markup(), 0
    for first, end in hit.marks:
        word = Markup("<mark>{}</mark>").format(hit.snippet[first:end])
        shown, last = shown + escape(hit.snippet[last:first]) + word, end
    return shown + escape(hit.snippet[last:])
