"""Commands about compactions: compact, hide, compactions, check."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import typer

from .. import Clearing, Plan, Store
from ..errors import InvalidValue, check_choice
from ..policy import Policy
from ..records import REASONS, Check, Compaction, Reason
from ..summaries import NAMED_SUMMARIZERS, Summarizer, named
from ..text import format_count
from . import render
from .options import (
    FieldChanges,
    Json,
    MaxTokens,
    MomentText,
    PolicyName,
    SessionId,
    find_session,
    open_existing_store,
    parse_moment_option,
    render_undo_hint,
    resolve_policy,
)
from .terminal import Column, TableRow, escape_controls

EXTRACTIVE_SUMMARIZER = "extractive"
SUMMARIZER_HELP = " or ".join(
    f"{each.spelled} ({each.needs})" for each in NAMED_SUMMARIZERS.values()
)

COMPACTION_COLUMNS = (
    Column("#", number=True),
    Column("when", wide=True, spare=1),
    Column("kind", spare=2),
    Column("outcome"),
    Column("reason", wide=True, spare=4),
    Column("policy", wide=True, spare=5),
    Column("hidden", wide=True),
    Column("messages", wide=True, spare=3),
    Column("tokens", wide=True),
    Column("title or error", wide=True),
)

LastUsage = Annotated[
    int | None,
    typer.Option(
        "--last-usage",
        metavar="N",
        min=0,
        help="All tokens of the last request.",
        show_default="what `usage` recorded",
    ),
]
FixedTokens = Annotated[
    int,
    typer.Option(
        "--fixed-tokens",
        metavar="N",
        min=0,
        help="Tokens of prompts, tools and rules, sent in addition to the view.",
    ),
]
UserInput = Annotated[
    str, typer.Option("--user-input", metavar="TEXT", help="The new input of the user.")
]
SummarizerName = Annotated[
    str,
    typer.Option("--summarizer", metavar="NAME", help=f"{SUMMARIZER_HELP}."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", metavar="URL", help="The model's endpoint.", show_default="$OPENAI_BASE_URL"
    ),
]
ReasonName = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="REASON",
        help=f"The reason for the record: {', '.join(REASONS)}.",
        show_default="manual; llm_call with --if-needed",
        autocompletion=lambda: list(REASONS),
    ),
]
IfNeededOption = Annotated[
    bool, typer.Option("--if-needed", help="Only if a trigger of the policy fires.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the plan only: cleared, hidden and kept messages.")
]

FirstHidden = Annotated[int, typer.Argument(metavar="FIRST", help="The first position to hide.")]
LastHidden = Annotated[int, typer.Argument(metavar="LAST", help="The last position to hide.")]
HidingText = Annotated[
    str | None,
    typer.Option(
        "--summary", metavar="TEXT", help="The text that replaces the range.", show_default="none"
    ),
]


class CompactionTask(NamedTuple):
    """A requested compaction: its session, policy, moment and reason.

    ``checks`` are the arguments of the check before it, None without a check.
    """

    store: Store
    session_id: str
    policy: Policy
    now: int | None
    checks: dict[str, Any] | None
    reason: Reason | None


def compact(
    ctx: typer.Context,
    session: SessionId,
    policy: PolicyName = "default",
    fields: FieldChanges = None,
    summarizer: SummarizerName = EXTRACTIVE_SUMMARIZER,
    base_url: BaseUrl = None,
    reason: ReasonName = None,
    if_needed: IfNeededOption = False,
    max_tokens: MaxTokens = None,
    last_usage: LastUsage = None,
    user_input: UserInput = "",
    fixed_tokens: FixedTokens = 0,
    dry_run: DryRun = False,
    now: MomentText = None,
    json: Json = False,
) -> None:
    """Replace the messages that a policy does not keep by a summary.

    It deletes nothing; `undo --compaction` undoes it.
    """
    rules, moment = resolve_policy(policy, fields), parse_moment_option(now)
    checks = _build_check_arguments(
        if_needed, CheckArguments(max_tokens, last_usage, user_input, fixed_tokens)
    )
    why = None if reason is None else check_choice(REASONS, "reason", reason)
    writer = named(summarizer, base_url=base_url, timeout=rules.summary_timeout)
    with open_existing_store(ctx) as store:
        task = CompactionTask(store, find_session(store, session).id, rules, moment, checks, why)
        if dry_run:
            _print_dry_run(task, json=json)
            return
        with _show_spinner(f"{summarizer} summarises {task.session_id}"):
            done = _perform_compaction(task, writer)
        answer = done._asdict() if done else None
        render.print_answer(answer, *_describe_compaction_outcome(task, done), json=json)
    raise typer.Exit(int(_has_hidden_nothing(done)))


def _has_hidden_nothing(done: Compaction | None) -> bool:
    """Tell whether a compaction was tried and hides nothing; one that was not needed is fine."""
    return done is not None and done.outcome in ("failed", "rejected")


def compactions(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """List the compactions of a session's line, oldest first."""
    with open_existing_store(ctx) as store:
        found = store.compactions(find_session(store, session).id)
    if json:
        render.print_json_list(each._asdict() for each in found)
    elif not found:
        render.print_lines("no compactions")
    else:
        render.show_table(COMPACTION_COLUMNS, map(_build_compaction_row, found))


def check(
    ctx: typer.Context,
    session: SessionId,
    policy: PolicyName = "default",
    fields: FieldChanges = None,
    max_tokens: MaxTokens = None,
    last_usage: LastUsage = None,
    user_input: UserInput = "",
    fixed_tokens: FixedTokens = 0,
    now: MomentText = None,
    json: Json = False,
) -> None:
    """Say whether to compact before the next request, and why."""
    rules, moment = resolve_policy(policy, fields), parse_moment_option(now)
    with open_existing_store(ctx) as store:
        found = find_session(store, session).id
        given = CheckArguments(max_tokens, last_usage, user_input, fixed_tokens)
        said = store.check(found, rules, **given._asdict(), now=moment)
    answer = {"session": found, **said._asdict()}
    render.print_answer(answer, f"{found}: {_describe_check(said)}", json=json)


def describe_compaction(done: Compaction) -> list[str]:
    """Return a compaction in words: its outcome, its hidden range, its savings."""
    number = f"compaction {done.id} " if done.id is not None else ""
    lines = [f"{number}{done.outcome} ({done.reason}, policy {done.policy})"]
    if done.outcome in ("applied", "undone"):
        lines += [f"{name}: {text}" for name, text in _describe_effects(done).items() if text]
    if done.still_over:
        lines.append("the view that is left is still at the policy's trigger, or over the window")
    if done.error:
        lines.append(f"because: {done.error}")
    return lines


def _describe_effects(done: Compaction) -> dict[str, str]:
    """Return the effects of a compaction by name; a missing effect is empty."""
    return {
        "hidden": _format_positions(done.hidden) if done.hidden else "",
        "cleared": format_count(len(done.cleared), "tool result") if done.cleared else "",
        "messages in the view": _format_change(done.messages_before, done.messages_after),
        "tokens in the view": _format_saving(done.tokens_before, done.tokens_after),
        "summary": done.title or render.shorten_to_line(done.summary or ""),
    }


def _format_saving(before: int | None, after: int | None) -> str:
    if not before or after is None:
        return ""
    return f"{_format_change(before, after)} ({1 - after / before:.0%} less)"


class CheckArguments(NamedTuple):
    """The arguments of a check."""

    max_tokens: int | None = None
    last_usage: int | None = None
    user_input: str = ""
    fixed_tokens: int = 0


def _build_check_arguments(if_needed: bool, given: CheckArguments) -> dict[str, Any] | None:
    """Return the arguments of a check, None for a compaction without one.

    Raises InvalidValue.
    """
    if if_needed:
        return given._asdict()
    if given != CheckArguments():
        raise InvalidValue(
            "--max-tokens, --last-usage, --user-input and --fixed-tokens are used only with"
            " --if-needed"
        )
    return None


def _perform_compaction(task: CompactionTask, writer: Summarizer) -> Compaction | None:
    store, session_id, policy, now, checks, reason = task
    if checks is None:
        return store.compact(session_id, policy, writer, reason=reason or "manual", now=now)
    options: dict[str, Any] = {"reason": reason or "llm_call", "now": now, **checks}
    return store.compact_if_needed(session_id, policy, writer, **options)


def _describe_compaction_outcome(task: CompactionTask, done: Compaction | None) -> list[str]:
    """Return the outcome of a compaction in words; if nothing was done, that of the check."""
    if done is None:
        asked = task.checks or {}
        found = task.store.check(task.session_id, task.policy, now=task.now, **asked)
        return [f"{task.session_id}: nothing is done: {found.reason}"]
    first, *rest = describe_compaction(done)
    if done.outcome == "applied":
        rest.append(render_undo_hint(task.session_id, done.id))
    return [f"{task.session_id}: {first}", *(f"  {line}" for line in rest)]


def _print_dry_run(task: CompactionTask, *, json: bool) -> None:
    """Print what a compaction would do."""
    clearing = _plan_first_clearing(task)
    said, plan = _check_and_plan(task)
    saving = 0 if plan.nothing else plan.estimate_saved_tokens(task.policy)
    head = task.store.session(task.session_id).head
    if json:
        covered = [[each.first, each.last] for each in plan.covered]
        answer = {**plan._asdict(), "messages": plan.messages, "covered": covered}
        answer |= {"kept": [plan.last + 1, head], "savings": saving}
        check = said._asdict() if said else None
        clears = clearing._asdict() if clearing else None
        found = {"clearing": clears, "check": check, "plan": answer}
        render.print_json({"session": task.session_id, **found})
        return
    if clearing is not None:
        render.print_lines(f"{task.session_id}: {_describe_clearing(clearing)}")
    if said is not None:
        render.print_lines(f"{task.session_id}: {_describe_check(said)}")
    if said is None or said.should_compact:
        render.print_lines(
            *(f"{task.session_id}: {line}" for line in _describe_plan(plan, head, saving))
        )


def _plan_first_clearing(task: CompactionTask) -> Clearing | None:
    """Return what would be cleared before the check, if there is one."""
    return (
        None
        if task.checks is None
        else task.store.plan_clearing(task.session_id, task.policy, now=task.now)
    )


def _describe_clearing(clearing: Clearing) -> str:
    """Return in words what would be cleared."""
    results = format_count(len(clearing.cleared), "tool result")
    places = ", ".join(str(seq) for seq, _ in clearing.cleared)
    before, after = clearing.tokens_before, clearing.tokens_after
    freed = f"{before - after:,} of {before:,} tokens"
    return f"would clear {results} first ({places}), which frees {freed}"


def _check_and_plan(task: CompactionTask) -> tuple[Check | None, Plan]:
    """Return what the check says, if there is one, and the plan for the window it was given."""
    store, session_id, policy, now, checks, _ = task
    if checks is None:
        return None, store.plan_compaction(session_id, policy, now=now)
    said = store.check(session_id, policy, now=now, **checks)
    max_tokens = checks["max_tokens"]
    windowed = (
        policy if max_tokens is None else policy.model_copy(update={"context_window": max_tokens})
    )
    return said, store.plan_compaction(session_id, windowed, now=now)


def _describe_plan(plan: Plan, head: int, saving: int) -> list[str]:
    if plan.nothing:
        return [f"nothing would be hidden: {plan.nothing}"]
    messages = format_count(plan.messages, "message")
    whole = f"{messages}, about {plan.tokens_hidden:,} tokens"
    lines = [
        f"would hide {_format_positions((plan.first, plan.last))}: {whole}",
        f"would keep {_format_positions((plan.last + 1, head))}",
    ]
    if plan.pinned:
        lines.append(f"would keep too, as system messages: {', '.join(map(str, plan.pinned))}")
    if plan.staying:
        lines.append(f"would keep too, of the current turn: {', '.join(map(str, plan.staying))}")
    return [*lines, f"would save about {saving:,} of {plan.tokens_before:,} tokens"]


CHECK_VERDICTS = {
    (False, False): "stays",
    (False, True): "should be compacted",
    (True, True): "must be compacted",
    (True, False): "overflows, and nothing can be compacted",
}
"""What a check says, by whether the view overflows and whether it should be compacted."""


def _describe_check(said: Check) -> str:
    tokens = f"{said.tokens:,} tokens"
    if said.should_compact:
        tokens += f", about {said.estimated_savings:,} could be saved"
    return f"{CHECK_VERDICTS[said.overflow, said.should_compact]}: {said.reason} ({tokens})"


def _build_compaction_row(done: Compaction) -> TableRow:
    return (
        done.id,
        render.format_moment(done.created_at),
        done.kind,
        done.outcome,
        done.reason,
        done.policy,
        _format_hidden_range(done),
        _format_change(done.messages_before, done.messages_after),
        _format_change(done.tokens_before, done.tokens_after),
        render.shorten_to_line(done.error or done.title or done.summary or ""),
    )


def _format_hidden_range(done: Compaction) -> str:
    if done.hidden:
        first, last = done.hidden
        return f"{first}–{last}"
    return f"{format_count(len(done.cleared), 'result')} cleared" if done.cleared else ""


def _format_positions(bounds: tuple[int, int]) -> str:
    first, last = bounds
    return f"position {first}" if first == last else f"positions {first} to {last}"


def _format_change(before: int | None, after: int | None) -> str:
    if before is None:
        return ""
    return f"{before:,}" if after is None else f"{before:,} → {after:,}"


@contextmanager
def _show_spinner(text: str) -> Iterator[None]:
    """Turn a wheel on a terminal's standard error while something takes its time."""
    from .tables import build_console

    error = build_console(error=True)
    if not error.is_terminal:
        yield
        return
    with error.status(escape_controls(text)):
        yield


def hide(
    ctx: typer.Context,
    session: SessionId,
    first: FirstHidden,
    last: LastHidden,
    summary: HidingText = None,
    now: MomentText = None,
    json: Json = False,
) -> None:
    """Hide a range of messages, or replace it by a text of yours.

    It deletes nothing; `undo --compaction` undoes it.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session)
        done = store.hide(found.id, first, last, summary, now=parse_moment_option(now))
    said = f"{found.id}: {_describe_hiding(done)}"
    render.print_answer(done._asdict(), said, f"  {render_undo_hint(found.id, done.id)}", json=json)


def _describe_hiding(done: Compaction) -> str:
    first, last = done.hidden or (0, 0)
    change = f"{done.tokens_before:,} → {done.tokens_after:,} tokens"
    return f"compaction {done.id} hides positions {first} to {last} ({change})"
