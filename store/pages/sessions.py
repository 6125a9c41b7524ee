"""The list of sessions, and the sessions that a search finds."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from contextlib import suppress
from hashlib import blake2b
from typing import NamedTuple

from markupsafe import Markup, escape

from .. import InvalidValue, SessionNotFound
from ..records import Hit, Session, SessionHit
from .page_rendering import Values, Visit, page

LISTED_SESSIONS = 50
MOST_FOUND = 1_000
"""Sessions that a search looks at, before they are chosen by project and program."""
HASH_LENGTH = 6
"""Characters by which the address of a page names a session of the pages before."""
HASHES = re.compile(rf"(?:[\w-]{{{HASH_LENGTH}}}){{0,{MOST_FOUND}}}", re.ASCII)
PLACE_PROBLEM = "the place in the list is not one of these pages"


class ListedSession(NamedTuple):
    """A session with its title, the cost of its requests, and the hits in it."""

    session: Session
    title: str
    cost: float | None
    found: SessionHit | None


@page("/", "sessions.html")
def show_sessions(visit: Visit) -> Values:
    """Return the sessions that were last active, or those with the words of a search."""
    if visit.get("q"):
        return _list_found_sessions(visit)
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
    """Return a session as the last page listed it; the list continues after it."""
    if not text:
        return None
    moment, _, session_id = text.partition(".")
    if not moment.lstrip("-").isdecimal() or len(moment) > 18:
        raise InvalidValue(PLACE_PROBLEM)
    at = int(moment)
    return Session(session_id, None, 0, None, {}, at, at, None, None, 0, "", None, archived=False)


def _list_found_sessions(visit: Visit) -> Values:
    """Return the sessions of a page of a search, and the place of the next page.

    The place names the sessions of all pages so far. So none is listed twice and none is missing,
    whatever changes the order between two pages.
    """
    seen = visit.get("after")
    if not HASHES.fullmatch(seen):
        raise InvalidValue(PLACE_PROBLEM)
    hits = _search_sessions(visit, seen)
    rows = [_load_listed_session(visit, hit.session, hit) for hit in hits[:LISTED_SESSIONS]]
    listed = seen + "".join(_hash_session_id(row.session.id) for row in rows)
    more = listed if len(hits) > LISTED_SESSIONS else None
    return {"rows": rows, "next": more, "mark_words": mark_words}


def _search_sessions(visit: Visit, seen: str) -> list[SessionHit]:
    """Return the sessions with the words of a search, in a project and of a program.

    Sessions that the pages before have listed are left out. All are looked at only where the first
    ones do not fill a page.
    """
    hashes = {seen[at : at + HASH_LENGTH] for at in range(0, len(seen), HASH_LENGTH)}
    since, until = visit.moment("since"), visit.moment("until", days=1)
    for limit in (min(len(hashes) + LISTED_SESSIONS + 1, MOST_FOUND), MOST_FOUND):
        hits = visit.face.search(
            visit.get("q"), by="session", limit=limit, since=since, until=until
        )
        new = (hit for hit in hits if _hash_session_id(hit.session.id) not in hashes)
        found = [hit for hit in new if _is_chosen(visit, hit.session)]
        if len(found) > LISTED_SESSIONS or len(hits) < limit:
            break
    return found


def _is_chosen(visit: Visit, session: Session) -> bool:
    """Tell whether a session is in the project and of the program that the address names."""
    project, source = visit.get("project").rstrip("/"), visit.get("source")
    is_below = f"{session.project_root or ''}/".startswith(f"{project}/" if project else "")
    return is_below and (not source or session.source == source)


def _hash_session_id(session_id: str) -> str:
    digest = blake2b(session_id.encode(), digest_size=HASH_LENGTH).digest()
    return urlsafe_b64encode(digest).decode()[:HASH_LENGTH]


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
