"""Commands about compactions: compact, compactions, check, usage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from .. import summarizers
from ..budget import savings
from ..compaction import REASONS
from ..errors import InvalidValue
from ..planning import Plan
from ..policy import Policy
from ..records import Check, Compaction
from ..store import Store
from ..summaries import Summarizer
from . import render
from .options import (
    Fields,
    Json,
    MaxTokens,
    Now,
    PolicyName,
    SessionId,
    existing,
    find,
    moment_of,
    policy_of,
)
from .render import Cell, Column

EXTRACTIVE = "extractive"

COLUMNS = (
    Column("#", number=True),
    Column("when", wide=True),
    Column("kind"),
    Column("outcome"),
    Column("reason", wide=True),
    Column("policy", wide=True),
    Column("hidden", wide=True),
    Column("messages", wide=True),
    Column("tokens", wide=True),
    Column("title or error", wide=True),
)

LastUsage = Annotated[
    int | None,
    typer.Option(
        "--last-usage", metavar="N", min=0, help="All tokens of the last request.", show_default="what `usage` recorded"
    ),
]
UserInput = Annotated[str, typer.Option("--user-input", metavar="TEXT", help="What the user is about to add.")]


def compact(
    ctx: typer.Context,
    session: SessionId,
    policy: PolicyName = "default",
    fields: Fields = None,
    summarizer: Annotated[
        str, typer.Option("--summarizer", metavar="NAME", help="extractive (no model), or openai:MODEL.")
    ] = EXTRACTIVE,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="The model's endpoint.", show_default="$OPENAI_BASE_URL"),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason",
            metavar="REASON",
            help=f"What the record says: {', '.join(REASONS)}.",
            show_default="manual; llm_call with --if-needed",
        ),
    ] = None,
    if_needed: Annotated[bool, typer.Option("--if-needed", help="Only if a trigger of the policy fires.")] = False,
    max_tokens: MaxTokens = None,
    last_usage: LastUsage = None,
    user_input: UserInput = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be hidden, and what kept.")] = False,
    now: Now = None,
    json: Json = False,
) -> None:
    """Hide what a policy does not keep behind a summary; deletes nothing, `undo --compaction` takes it back."""
    rules, checked = policy_of(policy, fields), _checks(if_needed, max_tokens, last_usage, user_input)
    if reason is not None and reason not in REASONS:
        raise InvalidValue(f"a reason is one of {', '.join(REASONS)}, not {reason!r}")
    writer = _summarizer(summarizer, base_url, rules)
    with existing(ctx) as store:
        found = find(store, session).id
        if dry_run:
            _rehearse(store, found, rules, checked, moment_of(now), json=json)
            return
        with _waiting(f"{summarizer} summarises {found}"):
            done = _compact(store, found, rules, writer, reason, checked, moment_of(now))
    _report(found, done, json=json)
    raise typer.Exit(int(done is not None and done.outcome in ("failed", "rejected")))


def compactions(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """List the compactions of a session's line, oldest first."""
    with existing(ctx) as store:
        found = store.compactions(find(store, session).id)
    if json:
        render.print_json_list(each._asdict() for each in found)
    elif not found:
        render.say("no compactions")
    else:
        render.table(COLUMNS, map(_row, found))


def check(
    ctx: typer.Context,
    session: SessionId,
    policy: PolicyName = "default",
    fields: Fields = None,
    max_tokens: MaxTokens = None,
    last_usage: LastUsage = None,
    user_input: UserInput = "",
    now: Now = None,
    json: Json = False,
) -> None:
    """Say whether a session should be compacted before the next request, and why."""
    with existing(ctx) as store:
        found = find(store, session).id
        said = store.check(found, policy_of(policy, fields), max_tokens, last_usage, user_input, now=moment_of(now))
    if json:
        render.print_json({"session": found, **said._asdict()})
    else:
        render.say(f"{found}: {_checked(said)}")


def usage(
    ctx: typer.Context,
    session: SessionId,
    given: Annotated[int, typer.Option("--input", metavar="N", min=0, help="Tokens of the request, cached ones too.")],
    output: Annotated[int, typer.Option("--output", metavar="N", min=0, help="Tokens of the answer.")],
    cached: Annotated[
        int, typer.Option("--cached", metavar="N", min=0, help="Of the request's, those read from the cache.")
    ] = 0,
    now: Now = None,
    json: Json = False,
) -> None:
    """Record what the request at a session's head cost, as the provider said; checks go by it."""
    with existing(ctx) as store:
        found = find(store, session).id
        kept = store.record_usage(found, input=given, output=output, cached=cached, now=moment_of(now))
    if json:
        render.print_json({"session": found, **kept._asdict()})
    else:
        render.say(f"{found}: {kept.input:,} in, {kept.output:,} out, {kept.cached:,} cached at position {kept.seq}")


def said_of(done: Compaction) -> list[str]:
    """Return a compaction in words: what came of it, what it hides, what it saved."""
    number = f"compaction {done.id} " if done.id is not None else ""
    lines = [f"{number}{done.outcome} ({done.reason}, policy {done.policy})"]
    if done.outcome in ("applied", "undone"):
        lines += [f"{name}: {text}" for name, text in _effects(done) if text]
    lines += ["the view that is left is still at the policy's trigger"] if done.still_over else []
    return lines + ([f"because: {done.error}"] if done.error else [])


def _effects(done: Compaction) -> list[tuple[str, str]]:
    saved = ""
    if done.tokens_before and done.tokens_after is not None:
        saved = (
            f"{_change(done.tokens_before, done.tokens_after)} ({1 - done.tokens_after / done.tokens_before:.0%} less)"
        )
    return [
        ("hidden", _positions(done.hidden) if done.hidden else ""),
        ("cleared", render.counted(len(done.cleared), "tool result") if done.cleared else ""),
        ("messages in the view", _change(done.messages_before, done.messages_after)),
        ("tokens in the view", saved),
        ("summary", done.title or render.one_line(done.summary or "")),
    ]


def _summarizer(name: str, base_url: str | None, policy: Policy) -> Summarizer:
    """Return a summarizer by name; a model has no more time than the policy gives. Raises InvalidValue, StoreError."""
    kind, _, model = name.partition(":")
    if kind != "openai" or not model.strip():
        if base_url is not None:
            raise InvalidValue("--base-url is for a model, such as --summarizer openai:MODEL")
        return summarizers.named(name)
    return summarizers.chat_model(model.strip(), base_url=base_url, timeout=policy.summary_timeout)


def _checks(if_needed: bool, max_tokens: int | None, last_usage: int | None, user_input: str) -> dict[str, Any] | None:
    """Return what a check is given, None where everything is to be compacted without one. Raises InvalidValue."""
    if if_needed:
        return {"max_tokens": max_tokens, "last_usage": last_usage, "user_input": user_input}
    if max_tokens is not None or last_usage is not None or user_input:
        raise InvalidValue("--max-tokens, --last-usage and --user-input are for the check that --if-needed makes")
    return None


def _compact(
    store: Store,
    session_id: str,
    policy: Policy,
    summarizer: Summarizer,
    reason: str | None,
    checks: dict[str, Any] | None,
    now: int | None,
) -> Compaction | None:
    if checks is None:
        return store.compact(session_id, policy, summarizer, reason=reason or "manual", now=now)
    return store.compact_if_needed(session_id, policy, summarizer, reason=reason or "llm_call", now=now, **checks)


def _report(session_id: str, done: Compaction | None, *, json: bool) -> None:
    if json:
        render.print_json(done._asdict() if done else None)
    elif done is None:
        render.say(f"{session_id}: not needed")
    else:
        first, *rest = said_of(done)
        render.say(f"{session_id}: {first}", *(f"  {line}" for line in rest))


def _rehearse(
    store: Store, session_id: str, policy: Policy, checks: dict[str, Any] | None, now: int | None, *, json: bool
) -> None:
    """Print what a compaction would do."""
    said = store.check(session_id, policy, now=now, **checks) if checks is not None else None
    if checks is not None and checks["max_tokens"] is not None:
        policy = policy.model_copy(update={"context_window": checks["max_tokens"]})
    plan = store.plan_compaction(session_id, policy, now=now)
    saving = 0 if plan.nothing else savings(policy, plan)
    head = store.session(session_id).head
    if json:
        answer = {**plan._asdict(), "messages": plan.messages, "kept": [plan.last + 1, head], "savings": saving}
        render.print_json({"session": session_id, "check": said._asdict() if said else None, "plan": answer})
        return
    if said is not None:
        render.say(f"{session_id}: {_checked(said)}")
    if said is None or said.should_compact:
        render.say(*(f"{session_id}: {line}" for line in _planned(plan, head, saving)))


def _planned(plan: Plan, head: int, saving: int) -> list[str]:
    if plan.nothing:
        return [f"nothing would be hidden: {plan.nothing}"]
    whole = f"{render.counted(plan.messages, 'message')}, about {plan.tokens_hidden:,} tokens"
    pinned = ", ".join(map(str, plan.pinned))
    return [
        f"would hide {_positions((plan.first, plan.last))}: {whole}",
        f"would keep {_positions((plan.last + 1, head))}",
        *([f"would keep too, as system messages: {pinned}"] if pinned else []),
        f"would save about {saving:,} of {plan.tokens_before:,} tokens",
    ]


def _checked(said: Check) -> str:
    verdict = "must be compacted" if said.overflow else "should be compacted" if said.should_compact else "stays"
    saving = f", about {said.estimated_savings:,} could be saved" if said.should_compact else ""
    if said.overflow and not said.should_compact:
        verdict = "overflows, and nothing can be compacted"
    return f"{verdict}: {said.reason} ({said.tokens:,} tokens{saving})"


def _row(done: Compaction) -> tuple[Cell, ...]:
    hidden = f"{done.hidden[0]}–{done.hidden[1]}" if done.hidden else ""
    cleared = f"{render.counted(len(done.cleared), 'result')} cleared" if done.cleared else ""
    return (
        done.id,
        render.moment(done.created_at),
        done.kind,
        done.outcome,
        done.reason,
        done.policy,
        hidden or cleared,
        _change(done.messages_before, done.messages_after),
        _change(done.tokens_before, done.tokens_after),
        render.one_line(done.error or done.title or done.summary or ""),
    )


def _positions(bounds: tuple[int, int]) -> str:
    first, last = bounds
    return f"position {first}" if first == last else f"positions {first} to {last}"


def _change(before: int | None, after: int | None) -> str:
    return "" if before is None else f"{before:,}" if after is None else f"{before:,} → {after:,}"


@contextmanager
def _waiting(text: str) -> Iterator[None]:
    """Turn a wheel on a terminal's standard error while something takes its time."""
    error = render.console(error=True)
    if not error.is_terminal:
        yield
        return
    with error.status(render.safe(text)):
        yield
