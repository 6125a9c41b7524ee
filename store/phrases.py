"""The texts of the store for a model.

Each phrase exists in every language, under a code. The language is that of the policy, so all
texts of the store in a request are in one language. Texts that the first requirements demand word
for word are listed apart, in `REQUIRED`, with their codes: they are the same in every language.
Names of tools, of keys and values in JSON, and of tags are not phrases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Language = Literal["zh", "en"]
"""The languages in which the store has its texts for a model."""
DEFAULT_LANGUAGE: Language = "zh"

PHRASES: Mapping[str, Mapping[Language, str]] = {
    # Fields of a policy.
    "terminal_placeholder": {
        "zh": "此命令返回内容已过时",
        "en": "[Outdated output of this command]",
    },
    "file_read_placeholder": {
        "zh": "[该文件的历史读取内容已压缩,请参看最新读取结果]",
        "en": "[Older read of this file; see the newest one]",
    },
    "any_tool_placeholder": {"zh": "[旧结果已清除]", "en": "[Old result, cleared]"},
    "picture_placeholder": {
        "zh": "[此处未显示:{type},{size}]",
        "en": "[Not shown here: {type}, {size}]",
    },
    "draft_notice": {
        "zh": "[此回答在此中断]",
        "en": "[This answer was interrupted here]",
    },
    "recall_notice": {
        "zh": "[可用工具 recall 查看原文]",
        "en": "[the tool recall shows it]",
    },
    # Views.
    "no_result": {
        "zh": "没有记录此调用的结果。",
        "en": "No result of this call was recorded.",
    },
    "beginning": {"zh": "(对话从这里开始。)", "en": "(The conversation begins here.)"},
    "exit": {"zh": "退出码 {code}", "en": "exit {code}"},
    "lines": {"zh": "{count} 行", "en": "{count} lines"},
    "ellipsis": {"zh": "…", "en": "..."},
    "more_lines": {"zh": "… (还有 {count} 行)", "en": "... ({count} more lines)"},
    "more_characters": {"zh": "… (还有 {count} 个字符)", "en": "... ({count} more characters)"},
    "more_items": {"zh": "… (还有 {count} 项)", "en": "... ({count} more items)"},
    "more_keys": {"zh": "… (还有 {count} 个键)", "en": "... ({count} more keys)"},
    # Requests.
    "todo_recap": {"zh": "待办回顾：{recap}", "en": "Todo recap: {recap}"},
    "todo_in_progress": {"zh": "进行中：{named}", "en": "in progress: {named}"},
    "todo_pending": {"zh": "待处理：{named}", "en": "pending: {named}"},
    "todo_more": {"zh": "另有 {count} 项", "en": "and {count} more"},
    "todo_all_done": {"zh": "全部完成", "en": "all done"},
    "read_in_order": {
        "zh": "请按此顺序逐个读取。",
        "en": "Read them one by one, in this order.",
    },
    # Summaries.
    "no_summary": {
        "zh": "未能生成摘要，仅保留近期历史。",
        "en": "No summary could be made, keeping recent history only.",
    },
    "turn_goes_on": {
        "zh": "(以上是当前轮次到目前为止的内容。该轮次尚未结束，后续消息是它的延续。)",
        "en": (
            "(So far the current turn. It is not finished: the messages that follow go on with it.)"
        ),
    },
    "empty_summary": {"zh": "LLM 返回空摘要", "en": "the model returned an empty summary"},
    "names_met": {"zh": "出现过的名称：", "en": "Names met:"},
    "voice_user": {"zh": "用户", "en": "User"},
    "voice_assistant": {"zh": "助手", "en": "Assistant"},
    "voice_tool": {"zh": "工具", "en": "Tool"},
    "voice_reasoning": {"zh": "推理", "en": "Reasoning"},
    "without_text": {"zh": "{count} 条没有文本的消息。", "en": "{count} messages without text."},
    "used": {"zh": "使用 {tool}", "en": "Used {tool}"},
    "used_times": {"zh": "使用 {count} 次", "en": "used {count} times"},
    "to_run": {"zh": "运行 {target}", "en": "to run {target}"},
    "to_read": {"zh": "读取 {target}", "en": "to read {target}"},
    "to_search": {"zh": "搜索 {target}", "en": "to search for {target}"},
    "to_list": {"zh": "列出 {target}", "en": "to list {target}"},
    "to_create": {"zh": "创建 {target}", "en": "to create {target}"},
    "to_modify": {"zh": "修改 {target}", "en": "to modify {target}"},
    "to_delete": {"zh": "删除 {target}", "en": "to delete {target}"},
    "to_change": {"zh": "更改 {target}", "en": "to change {target}"},
    "to_use_on": {"zh": "用于 {target}", "en": "to use it on {target}"},
    "failed": {"zh": "失败", "en": "failed"},
    "refused": {"zh": "被用户拒绝", "en": "refused by the user"},
    "count_read": {"zh": "读取 {count} 个文件", "en": "{count} files read"},
    "count_created": {"zh": "创建 {count} 个文件", "en": "{count} files created"},
    "count_modified": {"zh": "修改 {count} 个文件", "en": "{count} files modified"},
    "count_deleted": {"zh": "删除 {count} 个文件", "en": "{count} files deleted"},
    "one_read": {"zh": "读取 1 个文件", "en": "1 file read"},
    "one_created": {"zh": "创建 1 个文件", "en": "1 file created"},
    "one_modified": {"zh": "修改 1 个文件", "en": "1 file modified"},
    "one_deleted": {"zh": "删除 1 个文件", "en": "1 file deleted"},
    "counts_end": {"zh": "{counts}。", "en": "{counts}."},
    "count_more_action": {"zh": "{count} 项操作", "en": "{count} more actions"},
    "count_more_change": {"zh": "{count} 项文件更改", "en": "{count} more file changes"},
    "one_more_action": {"zh": "1 项操作", "en": "1 more action"},
    "one_more_change": {"zh": "1 项文件更改", "en": "1 more file change"},
    "not_listed": {"zh": "(另有 {counts}未列出。)", "en": "({counts} not listed.)"},
    "comma": {"zh": "，", "en": ", "},
    "and": {"zh": "，", "en": " and "},
    "colon": {"zh": "：", "en": ": "},
    # Facts beside a summary.
    "facts_file": {"zh": "涉及的文件：", "en": "Files touched:"},
    "facts_command": {"zh": "执行的命令：", "en": "Commands run:"},
    "facts_error": {"zh": "遇到的错误：", "en": "Errors met:"},
    "facts_left_out": {
        "zh": "(因篇幅所限省略：{counts})",
        "en": "(left out for want of room: {counts})",
    },
    "count_file": {"zh": "{count} 个文件", "en": "{count} files"},
    "count_command": {"zh": "{count} 条命令", "en": "{count} commands"},
    "count_error": {"zh": "{count} 个错误", "en": "{count} errors"},
    "one_file": {"zh": "1 个文件", "en": "1 file"},
    "one_command": {"zh": "1 条命令", "en": "1 command"},
    "one_error": {"zh": "1 个错误", "en": "1 error"},
    "came_to": {"zh": " → {outcome}", "en": " -> {outcome}"},
    "unanswered": {"zh": "无结果", "en": "no result"},
    "kind_file_read": {"zh": "读取", "en": "file_read"},
    "kind_file_edit": {"zh": "修改", "en": "file_edit"},
    "kind_terminal": {"zh": "命令", "en": "terminal"},
    "kind_search": {"zh": "搜索", "en": "search"},
    "kind_list": {"zh": "列表", "en": "list"},
    "kind_todo": {"zh": "待办", "en": "todo"},
    "kind_other": {"zh": "其他", "en": "other"},
    # Prompts for a model that summarises.
    "label_call": {"zh": "工具调用", "en": "Tool call"},
    "label_result": {"zh": "工具结果", "en": "Tool result"},
    "no_previous_summary": {"zh": "（无）", "en": "(none)"},
    "unknown_time": {"zh": "时间未知", "en": "a time unknown"},
    "unfinished": {
        "zh": (
            "注意：历史中的最后一个轮次尚未结束，它的用户消息会保留，后续消息是它的延续。"
            "请写明在这一轮次中已经做了什么、发现了什么、正在做什么，不要写成已经完成。"
        ),
        "en": (
            "The last turn of the history is not finished: its user message stays in sight, and "
            "the messages that follow go on with it. Say of that turn, too, what was done, what "
            "was found and what was being done last, and do not tell it as done."
        ),
    },
    # Pages for people.
    "page_user": {"zh": "用户", "en": "User"},
    "page_assistant": {"zh": "助手", "en": "Assistant"},
    "page_tool": {"zh": "结果", "en": "Result"},
    "page_system": {"zh": "系统", "en": "System"},
    "page_developer": {"zh": "开发者", "en": "Developer"},
    "page_thinking": {"zh": "思考", "en": "Thinking"},
    "page_failed": {"zh": "失败", "en": "failed"},
    "page_no_result": {"zh": "无结果", "en": "no result"},
    "page_result_only": {"zh": "工具结果", "en": "Result of a tool"},
    "page_empty": {"zh": "（空）", "en": "(empty)"},
    "page_alternatives": {"zh": "其他版本", "en": "Other versions of this message"},
    "page_previous": {"zh": "上一个版本", "en": "Previous version"},
    "page_next": {"zh": "下一个版本", "en": "Next version"},
}
"""The phrases by their codes."""


class RequiredText(NamedTuple):
    """A text that is required word for word, and the codes of its requirements."""

    text: str
    codes: str


REQUIRED: Mapping[str, RequiredText] = {
    "title": RequiredText("Summary of conversation", "S3.34"),
    "times": RequiredText("from {start} to {end}", "S3.34"),
    "actions": RequiredText("**Key Actions:**", "S3.49"),
    "changes": RequiredText("**Files Changed:**", "S3.49"),
    "body": RequiredText("**Summary:**", "S3.49"),
    "change": RequiredText("{path} ({action})", "S3.13, S3.49"),
    "timed_out": RequiredText(
        "Summary generation timed out, keeping recent history only.", "S4.34"
    ),
    "more_files": RequiredText("(and {count} more…)", "S4.43"),
    "mentioned": RequiredText("The user mentioned {files}.", "S4.44"),
    "must_read": RequiredText(
        "You MUST read {these} with the Read tool before answering.", "S4.44"
    ),
    "changed_outside": RequiredText("Note: {path} was modified externally.", "S4.47"),
    "action": RequiredText("Action: ", "S4.60"),
    "thought": RequiredText("Thought: ", "S4.60"),
    "finish": RequiredText("Finish", "S4.60"),
}
"""The texts that are the same in every language, as the requirements demand."""


def render_phrase(code: str, language: Language, /, **values: object) -> str:
    """Return a phrase in a language, with values in their places."""
    text = PHRASES[code][language]
    return text.format(**values) if values else text


def render_counted_phrase(what: str, count: int, language: Language) -> str:
    """Return a number of things in words: the code is ``one_`` or ``count_`` and their name."""
    if count == 1:
        return render_phrase(f"one_{what}", language)
    return render_phrase(f"count_{what}", language, count=count)


LANGUAGE_FIELDS = (
    "terminal_placeholder",
    "file_read_placeholder",
    "any_tool_placeholder",
    "picture_placeholder",
    "draft_notice",
    "recall_notice",
)
LANGUAGE_TEXTS: dict[Language, dict[str, str]] = {
    language: {name: PHRASES[name][language] for name in LANGUAGE_FIELDS}
    for language in ("zh", "en")
}
"""The fields that are texts for a model, by the language of the policy."""

DEFAULT_TEXTS = LANGUAGE_TEXTS[DEFAULT_LANGUAGE]
"""These texts in the language of a policy that names none."""
