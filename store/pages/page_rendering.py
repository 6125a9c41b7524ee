"""Rendering of pages: the visited store, the language of a visitor, templates, shown values."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from .. import AsyncScoped, AsyncStore, InvalidValue, Scoped, Store, StoreError
from ..html import make_environment
from ..policy import POLICIES, Language, Policy

FOLDER = Path(__file__).parent
LANGUAGE_NAMES: dict[Language, str] = {"en": "English", "zh": "中文"}
LANGUAGE_COOKIE = "convostore-language"
PAGES: list[Route] = []
"""The pages, in the order in which an address is compared with theirs."""

Values = dict[str, Any]


class Site(NamedTuple):
    """An open store, or the sessions of one owner in it, and where the store is.

    ``target`` is what SQL is asked of, None if it is switched off.
    """

    store: Store
    face: Store | Scoped
    awaited: AsyncStore | AsyncScoped
    target: Any
    owner: str | None


class Visit(NamedTuple):
    """A request for a page."""

    request: Request
    site: Site
    language: Language

    @property
    def face(self) -> Store | Scoped:
        """The sessions that the visitor may see."""
        return self.site.face

    @property
    def session_id(self) -> str:
        """The session that the address names."""
        return str(self.request.path_params["session_id"])

    def get(self, name: str) -> str:
        """Return a parameter of the address, "" if it is not there."""
        return self.request.query_params.get(name, "").strip()

    def number(self, name: str) -> int | None:
        """Return a whole number of the address; None without one. Raises InvalidValue."""
        text = self.get(name)
        if not text:
            return None
        if not text.isascii() or not text.isdecimal() or len(text) > 18:
            raise InvalidValue(f"{name} is a whole number, not {text[:40]!r}")
        return int(text)

    def moment(self, name: str, days: int = 0) -> int | None:
        """Return a moment of the address in ms, some days later. Raises InvalidValue."""
        text = self.get(name)
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return int((moment + timedelta(days)).timestamp() * 1000)
        except (ValueError, OverflowError) as problem:
            raise InvalidValue(
                f"{name} is a date, such as 2026-07-20, not {text[:40]!r}"
            ) from problem

    def policy(self, default: str = "agent") -> Policy:
        """Return the ready policy that the address names. Raises InvalidPolicy."""
        return Policy.named(self.get("policy") or default)

    def sum_costs(self, session_id: str) -> float | None:
        """Return what the requests of a session cost, as far as it is known; None if it is not."""
        totals = self.face.usage_totals(session_id, by="session")
        return totals[0].cost if totals else None

    @staticmethod
    def format_cost(dollars: float | None) -> str:
        """Return a cost in US dollars, with as many digits as tell something."""
        if dollars is None:
            return "–"
        return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"

    def say(self, code: str, /, **values: object) -> str:
        """Return a phrase in the visitor's language."""
        phrase = load_page_phrases()[code][self.language]
        return phrase.format(**values) if values else phrase

    def change(self, **values: object) -> str:
        """Return this address with other parameters; None takes one away."""
        given = {**self.request.query_params, **values}
        kept = {name: value for name, value in given.items() if value is not None and value != ""}
        return f"?{urlencode(kept)}"

    def render(self, template: str, values: Values) -> str:
        """Return a template with values in it."""
        common = {
            "visit": self,
            "say": self.say,
            "languages": LANGUAGE_NAMES,
            "policies": [*POLICIES],
        }
        return load_templates().get_template(template).render(common | values)


PageValues = Callable[[Visit], Values]


def page(path: str, template: str) -> Callable[[PageValues], PageValues]:
    """Make a function that returns the values of a template the page at a path."""

    def register(build: PageValues) -> PageValues:
        async def answer(request: Request) -> Response:
            return await run_in_threadpool(render_page, request, template, build)

        PAGES.append(Route(path, answer, name=build.__name__))
        return build

    return register


def render_page(request: Request, template: str, build: PageValues) -> Response:
    """Return a page, or the page that tells an error of the store."""
    visit = Visit(request, request.app.state.site, choose_language(request))
    try:
        answer = HTMLResponse(visit.render(template, build(visit)))
    except StoreError as problem:
        answer = render_problem(visit, str(problem), problem.status)
    if visit.get("lang") in LANGUAGE_NAMES:
        answer.set_cookie(LANGUAGE_COOKIE, visit.language, httponly=True, samesite="strict")
    return answer


def render_problem(visit: Visit, problem: str, status: int) -> HTMLResponse:
    """Return the page that tells why another one cannot be shown."""
    return HTMLResponse(visit.render("problem.html", {"problem": problem}), status)


def choose_language(request: Request) -> Language:
    """Return the language asked for, else that of the last choice, else the browser's first."""
    chosen = request.query_params.get("lang"), request.cookies.get(LANGUAGE_COOKIE)
    accepted = request.headers.get("accept-language", "").lower().split(",")
    wanted = [*chosen, *(each.strip()[:2] for each in accepted), "en"]
    return next(each for name in wanted for each in LANGUAGE_NAMES if each == name)


@cache
def load_page_phrases() -> Mapping[str, Mapping[str, str]]:
    """Return the phrases of pages by their codes, each in all languages."""
    return tomllib.loads((FOLDER / "phrases.toml").read_text("utf-8"))


@cache
def load_templates() -> Environment:
    """Return the templates, in which every value is escaped."""
    templates = make_environment(FOLDER / "templates")
    templates.filters.update(
        count="{:,}".format,
        cost=Visit.format_cost,
        moment=format_page_moment,
        part=quote_part,
        share="{:.0%}".format,
    )
    return templates


def quote_part(text: object) -> str:
    """Return a text as one part of an address."""
    return quote(str(text), safe="")


def format_page_moment(milliseconds: int | None) -> str:
    """Return a moment in UTC to the minute; the number itself outside of the calendar."""
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
