"""The rules of a view, as a table.

A verdict names a rule that replaces a result, or the reason why the result stays. The rows of
`RULE_TABLE` are both, in the order in which they are tested: the first row whose condition holds
for a result is its verdict. The conditions are in ``rules.sql`` under the names of the rows, and
this table orders them in the query there. Reasons, log lines, bound values, the results that need
not be read, and the page about the rules follow from the same rows.

To add a rule: write its condition in ``rules.sql``, its row here, its fields and its texts in
``policy.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ..database import Queries
from ..policy import Policy
from ..tools import failure, render_signs_sql

RuleName = Literal["terminal", "file_read", "any_tool", "tool_output"]
VerdictReason = Literal[
    "redacted",
    "terminal",
    "file_read",
    "any_tool",
    "arguments",
    "tool_output",
    "error",
    "pending",
    "recent",
    "undated",
    "current_turn",
    "newest",
    "young",
    "small",
    "no_path",
    "newest_reads",
    "other",
    "short",
    "uncovered",
    "picture",
    "past_picture",
    "unreadable_picture",
    "cleared",
    "waiting",
]
"""The reason why a tool result is replaced or stays, or a call is cut."""


class Rule(NamedTuple):
    """A row of the table.

    ``does`` is the effect on a result for which the condition holds. ``fields`` are the fields of a
    policy that the condition uses. With a field NAME_max_age among them results grow old under the
    rule: its condition is bound ``:NAME_before``, and the part NAME_young selects the results that
    time may make old. ``log`` is the log line for a view, by language.
    """

    name: VerdictReason
    reason: str
    fields: tuple[str, ...] = ()
    does: Literal["replaces", "names", "shortens", "keeps"] = "keeps"
    log: dict[str, str] | None = None

    @property
    def whole(self) -> bool:
        """Whether a result is replaced as a whole, by the policy's field NAME_placeholder.

        The line for a result with names (``names``) begins with that field.
        """
        return self.does == "replaces"


COMMON_FIELDS = (
    *("tool_kinds", "identity", "undated"),
    *("exit_code_is_error", "stderr_is_error", "orphans"),
)
"""Fields of a policy that every row uses: the kind and moment of a result, its failure, and the
results that are shown.
"""

TURN_FIELDS = ("judge_at", "protect_current_turn")
SLOT_FIELDS = ("terminal_keep", "errors_take_slots")
READ_FIELDS = ("file_read", "file_read_keep", "batch_rule", "dedupe")
ANY_TOOL_FIELDS = ("any_tool", "clear_keep")
CUT_FIELDS = ("cut_arguments", "cut_keep", "recall", "recall_notice")
CLEARED_LINE_FIELDS = ("any_tool_placeholder", "recall", "recall_notice")

RULE_TABLE = (
    Rule("redacted", "its words were taken out"),
    Rule(
        "terminal",
        "output of a command, not one of the newest {terminal_keep} tool results, "
        "over {terminal_minutes} minutes old",
        (
            "terminal",
            *SLOT_FIELDS,
            "terminal_max_age",
            "terminal_placeholder",
            "min_saving",
            *TURN_FIELDS,
        ),
        "replaces",
        {
            "zh": "精简了 %d 个过时命令返回内容",
            "en": "replaced %d outdated outputs of commands",
        },
    ),
    Rule(
        "file_read",
        "{file_read_keep} newer reads of the same file are kept",
        (
            *READ_FIELDS,
            *ANY_TOOL_FIELDS,
            "range_aware",
            "file_read_placeholder",
            "min_saving",
            *TURN_FIELDS,
        ),
        "replaces",
        {
            "zh": "精简了 %d 个历史文件读取内容",
            "en": "replaced %d old reads of files",
        },
    ),
    Rule(
        "any_tool",
        "not one of the newest {clear_keep} tool results, and sent before",
        (
            *ANY_TOOL_FIELDS,
            "clear_warm_keep",
            "keep_asked",
            *CLEARED_LINE_FIELDS,
            "min_saving",
            *TURN_FIELDS,
        ),
        "names",
        {
            "zh": "清除了 %d 个旧的工具返回内容",
            "en": "cleared %d old tool results",
        },
    ),
    Rule(
        "tool_output",
        "its turn is finished, so its short form is enough",
        ("tool_output", "terminal", *READ_FIELDS, "min_saving"),
        "shortens",
        {
            "zh": "压缩了 %d 个已完成轮次的工具返回内容",
            "en": "shortened %d tool results of finished turns",
        },
    ),
    Rule("error", "errors always stay"),
    Rule("pending", "the tool is still running"),
    Rule(
        "recent",
        "one of the newest {clear_keep} tool results, or not sent yet",
        ANY_TOOL_FIELDS,
    ),
    Rule("undated", "no timestamp, so no age and no rank"),
    Rule("current_turn", "part of the current turn", TURN_FIELDS),
    Rule("newest", "one of the newest {terminal_keep} tool results", ("terminal", *SLOT_FIELDS)),
    Rule("young", "not over {terminal_minutes} minutes old", ("terminal", "terminal_max_age")),
    Rule("small", "replacing it would save too little", ("terminal", *READ_FIELDS, "min_saving")),
    Rule("no_path", "the file it read is not known", ("file_read",)),
    Rule(
        "newest_reads", "among the newest {file_read_keep} reads of each of its files", READ_FIELDS
    ),
    Rule("other", "no rule is about this tool"),
)
"""The rows tested for each result, in this order; the last one applies if no other does."""

LATER_RULES = (
    Rule("arguments", "a call as old as that, its arguments cut", CUT_FIELDS, "shortens"),
    Rule("short", "its turn is finished, and it is short already", ("tool_output", "min_saving")),
    Rule("uncovered", "newer kept reads do not cover its lines", ("range_aware",)),
    Rule(
        "picture",
        "of pictures that are not among the newest {picture_keep}, type and size are said",
        ("picture_keep", "picture_placeholder"),
    ),
    Rule(
        "past_picture",
        "of pictures of finished turns, type and size are said",
        ("picture_current_turn", "picture_placeholder"),
    ),
    Rule(
        "unreadable_picture",
        "of a picture that is no base64, type and size are said",
        ("picture_placeholder",),
    ),
    Rule("cleared", "replaced since the cache was last given up", ("clearing",), "replaces"),
    Rule(
        "waiting",
        "to be replaced when the cache is cold or enough is to be freed",
        (
            "clearing",
            "clear_min_freed",
            "cache_lifetime",
            "clear_warm_freed",
            "clear_warm_share",
            "clear_bound",
        ),
    ),
)
"""The rows found for a result after it was judged."""

ClearingEffect = RuleName | Literal["arguments"]
"""The effect of a clearing: a rule for a result, or the cut of a call's arguments."""
RULES: tuple[RuleName, ...] = get_args(RuleName)
"""The rows that change a result; each is a switch of the policy with the same name."""
WHOLE_RESULT_RULES = tuple(rule.name for rule in RULE_TABLE if rule.whole)
"""The rules that replace a result as a whole by a text of the policy."""
NAMING_RULES = tuple(rule.name for rule in RULE_TABLE if rule.does == "names")
"""The rules that replace a whole result by a line with names from its content."""
RULE_REASONS: dict[str, str] = {rule.name: rule.reason for rule in (*RULE_TABLE, *LATER_RULES)}
RULE_LOG_TEXTS = {rule.name: rule.log for rule in RULE_TABLE if rule.log}
AGES = {rule.name: field for rule in RULE_TABLE if (field := f"{rule.name}_max_age") in rule.fields}
"""The rules under which results grow old, and the fields of a policy with their ages."""
AGE_BORDERS = {f"{name}_before": field for name, field in AGES.items()}
"""The bound moments before which results are old, and the fields of a policy that they follow."""


RULES_FILE = Path(__file__).with_name("rules.sql")
RULE_QUERIES = Queries(
    RULES_FILE,
    texts=("kinds", "runs"),
    any_sign=render_signs_sql("named", commands_only=False),
    command_sign=render_signs_sql("named", commands_only=True),
    first_that_holds="\n        ".join(
        f"WHEN {{{rule.name}}} THEN '{rule.name}'" for rule in RULE_TABLE[:-1]
    ),
    names_of_rules=", ".join(f"'{name}'" for name in RULES),
    names_of_whole=", ".join(f"'{name}'" for name in WHOLE_RESULT_RULES),
    is_young=" OR ".join(f"{{{name}_young}}" for name in AGES),
    whole_text="\n        ".join(
        f"WHEN rule = '{name}' THEN :{name}_text" for name in WHOLE_RESULT_RULES
    ),
)
RESULT_VERDICTS = RULE_QUERIES.statement("verdicts")
COVERED_READS = RULE_QUERIES.statement("covered")
CLEARABLE_BORDER = RULE_QUERIES.statement("clearable")


def bind_policy(policy: Policy) -> dict[str, Any]:
    """Return the policy as the values that the queries bind: switches 0 or 1, texts by length."""
    return {
        **{name: int(getattr(policy, name)) for name in BOUND_FIELDS},
        **failure.build_sign_switches(policy),
        **{f"{name}_placeholder": len(text) for name, text in list_placeholders(policy).items()},
        "kinds": json.dumps(dict(policy.tool_kinds)),
        "sniff": int(policy.identity == "sniff"),
        "adopt": int(policy.orphans == "adopt"),
        "batch_any": int(policy.batch_rule == "any"),
        "errors_stay": int(policy.terminal or policy.file_read),
        "by_stored_at": int(policy.undated == "stored_at"),
    }


BOUND_FIELDS = (
    *RULES,
    "errors_take_slots",
    "dedupe",
    "min_saving",
    "clear_keep",
    *(name for rule in WHOLE_RESULT_RULES if (name := f"{rule}_keep") in Policy.model_fields),
)
"""Fields of a policy that queries bind under their own names, the counts of rules if they have any.
"""


def list_placeholders(policy: Policy) -> dict[str | None, str]:
    """Return the text that replaces a whole result, by rule."""
    return {name: getattr(policy, f"{name}_placeholder") for name in WHOLE_RESULT_RULES}


def render_explanations(policy: Policy) -> dict[str, str]:
    """Return the meaning of each row under a policy, in words."""
    ages = {f"{name}_minutes": getattr(policy, field) / 60_000 for name, field in AGES.items()}
    values = {**vars(policy), **{name: f"{age:g}" for name, age in ages.items()}}
    return {why: text.format_map(values) for why, text in RULE_REASONS.items()}
