"""The names that programs of the field use: tools, arguments, exit codes.

Data and nothing else. The kinds seed a table of the database, which a user may edit and which is
joined when a view is built. Names are exact, as case and dashes distinguish programs. A kind is
about the *result*, and about the newer results that make it stale: so a web search is `other`, and
listing a folder is `list`. Nothing here knows how a policy uses a kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, get_args

ToolResultKind = Literal["terminal", "file_read", "file_edit", "search", "list", "todo", "other"]

ALL_TOOL_KINDS: tuple[ToolResultKind, ...] = get_args(ToolResultKind)
"""All kinds; a name that is in no table has none."""

RECALL_TOOL_NAME = "recall"
"""The tool by which a model calls back hidden content."""

DECIDING_ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        "str_replace_editor": "command",
        "str_replace_based_edit_tool": "command",
        "str-replace-editor": "command",
        "file_editor": "command",
        "text_editor": "command",
        "developer__text_editor": "command",
        "text_editor_code_execution": "command",
        "fs_read": "mode",
    }
)
"""Tools with several kinds, and the argument that decides.

Such a kind is listed as ``name:argument``.
"""

# Aider and mini-swe-agent are not here: they call no tools by name.
_PROGRAM_TOOLS: dict[str, dict[ToolResultKind, str]] = {
    "snow-cli": {
        "terminal": "terminal-execute",
        "file_read": "filesystem-read",
        "file_edit": """
            filesystem-create filesystem-edit filesystem-edit_search filesystem-replaceedit
            filesystem-undo filesystem-write filesystem-delete""",
        "search": """
            ace-find_definition ace-find_references ace-semantic_search ace-text_search
            ace-file_outline ace-search codebase-search context_engine-codebase-retrieval""",
        "list": "filesystem-list",
        "todo": "todo-create todo-get todo-update todo-add todo-delete todo-manage",
        "other": """
            ace-index_stats ace-clear_cache ide-get_diagnostics askuser-ask_question skill-execute
            websearch-search websearch-fetch notebook-add notebook-query notebook-update
            notebook-delete notebook-list notebook-manage useful-info-add useful-info-delete
            useful-info-list""",
    },
    "Claude Code": {
        "terminal": "Bash BashOutput KillShell KillBash PowerShell",
        "file_read": "Read NotebookRead",
        "file_edit": "Edit MultiEdit Write NotebookEdit",
        "search": "Grep Glob LSP",
        "list": "LS",
        "todo": "TodoWrite TodoRead TaskCreate TaskUpdate TaskGet TaskList",
        "other": """
            Task Agent TaskOutput TaskStop Skill SlashCommand WebFetch WebSearch ToolSearch
            AskUserQuestion EnterPlanMode ExitPlanMode ListMcpResourcesTool ReadMcpResourceTool
            SendMessage""",
    },
    "Anthropic API": {
        "terminal": "bash bash_code_execution code_execution",
        "file_edit": "str_replace_editor str_replace_based_edit_tool text_editor_code_execution",
        "file_read": """
            str_replace_editor:view str_replace_based_edit_tool:view
            text_editor_code_execution:view""",
        "other": "web_search web_fetch memory computer",
    },
    "Codex": {
        "terminal": """
            shell shell_command local_shell local_shell_call container.exec exec exec_command
            unified_exec write_stdin""",
        "file_read": "read_file view_image",
        "file_edit": "apply_patch",
        "search": "grep_files",
        "list": "list_dir",
        "todo": "update_plan",
        "other": """
            spawn_agent send_input wait_agent wait close_agent request_user_input tool_search
            list_mcp_resources list_mcp_resource_templates read_mcp_resource web_search_call""",
    },
    "OpenAI API": {
        "terminal": "code_interpreter python",
    },
    "opencode": {
        "terminal": "bash",
        "file_read": "read",
        "file_edit": "edit write patch multiedit apply_patch",
        "search": "grep glob codesearch lsp",
        "list": "list",
        "todo": "todowrite todoread",
        "other": "task webfetch websearch skill question batch invalid plan_enter plan_exit",
    },
    "Gemini CLI, Qwen Code": {
        "terminal": "run_shell_command",
        "file_read": "read_file read_many_files",
        "file_edit": "write_file replace edit",
        "search": "search_file_content grep_search glob",
        "list": "list_directory",
        "todo": """
            write_todos todo_write tracker_create_task tracker_update_task tracker_get_task
            tracker_list_tasks tracker_add_dependency tracker_visualize""",
        "other": """
            google_web_search web_fetch save_memory ask_user activate_skill get_internal_docs
            enter_plan_mode exit_plan_mode codebase_investigator cli_help""",
    },
    "Cline, Roo Code": {
        "terminal": "execute_command read_command_output run_commands",
        "file_read": "read_file read_files",
        "file_edit": """
            write_to_file replace_in_file apply_diff insert_content search_and_replace
            search_replace edit_file edit_file_roo edit_file_anthropic edit_file_grok
            edit_file_gemini edit_file_codex apply_patch editor""",
        "search": "search_files codebase_search search_codebase list_code_definition_names",
        "list": "list_files",
        "todo": "update_todo_list focus_chain",
        "other": """
            ask_followup_question attempt_completion browser_action use_mcp_tool
            access_mcp_resource new_task switch_mode plan_mode_respond act_mode_respond condense
            summarize_task fetch_instructions load_mcp_documentation run_slash_command
            generate_image search_subagent""",
    },
    "SWE-agent": {
        "terminal": "bash",
        "file_read": "open goto scroll_up scroll_down view_file",
        "file_edit": "edit create insert",
        "search": "find_file search_file search_dir",
        "other": "submit exit_cost exit_forfeit",
    },
    "OpenHands": {
        "terminal": "execute_bash terminal cmd_run execute_ipython_cell run_ipython",
        "file_edit": "file_editor edit_file",
        "file_read": "file_editor:view",
        "todo": "task_tracker",
        "other": "think finish browser browse web_read delegate",
    },
    "Copilot CLI": {
        "terminal": """
            bash shell write_bash read_bash stop_bash list_bash powershell write_powershell
            read_powershell stop_powershell list_powershell""",
        "file_read": "view",
        "file_edit": "create edit apply_patch",
        "search": "grep rg glob",
        "todo": "update_todo",
        "other": """
            task read_agent write_agent list_agents report_intent skill
            fetch_copilot_cli_documentation sql session_store_sql""",
    },
    "VS Code": {
        "terminal": """
            run_in_terminal get_terminal_output terminal_selection terminal_last_command
            create_and_run_task run_task get_task_output runTests run_tests run_notebook_cell""",
        "file_read": "read_file read_notebook_cell_output",
        "file_edit": """
            insert_edit_into_file create_file replace_string_in_file multi_replace_string_in_file
            edit_notebook_file create_directory""",
        "search": """
            semantic_search file_search grep_search search_workspace_symbols list_code_usages
            test_search""",
        "list": "list_dir read_project_structure",
        "todo": "manage_todo_list",
        "other": """
            get_errors get_changed_files fetch_webpage github_repo get_vscode_api runSubagent""",
    },
    "Cursor": {
        "terminal": "run_terminal_cmd Shell",
        "file_read": "read_file",
        "file_edit": "edit_file search_replace reapply delete_file edit_notebook StrReplace Delete",
        "search": "codebase_search grep_search file_search grep glob_file_search SemanticSearch",
        "list": "list_dir",
        "todo": "todo_write",
        "other": "read_lints fetch_rules diff_history create_diagram update_memory",
    },
    "Windsurf, Antigravity": {
        "terminal": "run_command command_status read_terminal send_command_input",
        "file_read": "view_file view_line_range view_content_chunk view_code_item",
        "file_edit": "replace_file_content multi_replace_file_content write_to_file propose_code",
        "search": "find_by_name code_search view_file_outline",
        "todo": "todo_list",
    },
    "Continue": {
        "terminal": "run_terminal_command",
        "file_read": "read_file read_file_range read_currently_open_file",
        "file_edit": """
            create_new_file edit_existing_file single_find_and_replace search_and_replace_in_file
            multi_edit""",
        "search": "grep_search file_glob_search exact_search codebase",
        "list": "ls view_subdirectory view_repo_map",
        "other": "search_web fetch_url_content view_diff create_rule_block request_rule",
    },
    "goose": {
        "terminal": "developer__shell",
        "file_read": "developer__text_editor:view text_editor:view developer__image_processor",
        "file_edit": "developer__text_editor text_editor developer__edit developer__write",
        "search": "developer__analyze",
        "list": "developer__tree",
        "todo": "todo__read todo__write todo__todo_write",
    },
    "Kiro": {
        "terminal": "execute_bash executeBash executePwsh execute_pwsh execute_cmd",
        "file_read": "fs_read readFile readMultipleFiles readCode",
        "file_edit": "fs_write fsWrite fsAppend strReplace deleteFile",
        "search": "grepSearch fileSearch fs_read:Search",
        "list": "listDirectory fs_read:Directory",
        "todo": "todo_list",
        "other": "use_aws introspect knowledge thinking",
    },
    "Droid": {
        "terminal": "Execute",
        "file_edit": "Create Edit ApplyPatch",
    },
    "pi": {
        "terminal": "bash",
        "file_read": "read",
        "file_edit": "edit write",
        "search": "grep find",
        "list": "ls",
    },
    "Zed": {
        "terminal": "terminal",
        "file_edit": """
            edit_file write_file save_file copy_path move_path delete_path create_directory""",
        "search": "find_path grep find_references go_to_definition",
        "list": "list_directory",
        "other": "diagnostics fetch now thinking spawn_agent",
    },
    "Augment": {
        "terminal": """
            launch-process read-process write-process kill-process list-processes read-terminal""",
        "file_read": "str-replace-editor:view",
        "file_edit": "str-replace-editor save-file remove-files",
        "search": "codebase-retrieval",
        "todo": "view_tasklist add_tasks update_tasks reorganize_tasklist",
    },
    "Kimi": {
        "file_read": "ReadFile ReadMediaFile",
        "file_edit": "WriteFile StrReplaceFile",
        "todo": "SetTodoList",
    },
    "Crush": {
        "terminal": "job_output job_kill",
    },
    "LangChain deep agents": {
        "terminal": "execute",
    },
    "Moatless": {
        "file_read": "ViewCode",
        "file_edit": "StringReplace CreateFile AppendString",
        "search": "FindClass FindFunction FindCodeSnippet SemanticSearch",
        "terminal": "RunTests",
    },
}

_SERVER_TOOLS: dict[str, dict[ToolResultKind, str]] = {
    "filesystem": {
        "file_read": "read_file read_text_file read_media_file read_multiple_files",
        "file_edit": "write_file edit_file create_directory move_file",
        "search": "search_files",
        "list": """
            list_directory list_directory_with_sizes directory_tree get_file_info
            list_allowed_directories""",
    },
    "desktop-commander": {
        "terminal": """
            start_process read_process_output interact_with_process force_terminate list_sessions
            execute_command read_output""",
        "file_read": "read_file read_multiple_files",
        "file_edit": "write_file edit_block create_directory move_file",
        "search": "start_search get_more_search_results search_files search_code",
        "list": "list_directory get_file_info",
    },
    "serena": {
        "terminal": "execute_shell_command",
        "file_read": "read_file",
        "file_edit": """
            create_text_file replace_content replace_regex replace_symbol_body insert_after_symbol
            insert_before_symbol""",
        "search": """
            find_symbol find_referencing_symbols get_symbols_overview search_for_pattern
            find_file""",
        "list": "list_dir",
    },
}
"""Tools of MCP servers, known by their bare name and by the names that programs make of server and
tool.
"""

_SERVER_NAME_FORMS = (
    "{tool}",
    "mcp__{server}__{tool}",
    "mcp_{server}_{tool}",
    "{server}__{tool}",
    "{server}_{tool}",
    "{server}-{tool}",
)


def list_tool_kinds() -> Iterator[tuple[str, ToolResultKind]]:
    """Yield every name with its kind, repeated where several programs use it."""
    for kinds in _PROGRAM_TOOLS.values():
        yield from _list_kind_names(kinds)
    for server, kinds in _SERVER_TOOLS.items():
        for tool, kind in _list_kind_names(kinds):
            yield from (
                (name, kind)
                for name in [name.format(server=server, tool=tool) for name in _SERVER_NAME_FORMS]
            )


def _list_kind_names(kinds: Mapping[ToolResultKind, str]) -> Iterator[tuple[str, ToolResultKind]]:
    for kind, names in kinds.items():
        yield from ((name, kind) for name in names.split())


TOOL_KINDS: Mapping[str, ToolResultKind] = MappingProxyType(dict(list_tool_kinds()))
"""The kind of each tool by its exact name, or ``name:argument`` if `DECIDING_ARGUMENTS` has it."""


@lru_cache(maxsize=1 << 12)
def normalise_key(key: str) -> str:
    """Return a key in a uniform spelling: no dashes, underscores, capitals."""
    return key.replace("_", "").replace("-", "").lower()


def split_names(text: str) -> frozenset[str]:
    """Return the names of a text that are separated by spaces."""
    return frozenset(text.split())


FILE_WORDS = split_names("""
    path paths file files filepath filepaths filename filenames targetfile targetpath absolutepath
    absolutepaths relativepath relativeworkspacepath notebookpath imagepath imagepaths
    operations""")
"""Arguments that name files, spelled as in `normalise_key`."""

FOLDER_WORDS = split_names("""
    dir directory directories dirpath directorypath targetdirectory targetdirectories folder
    folderpath searchpath searchdirectory""")
"""Arguments that name folders, spelled likewise."""

LINE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        word: meaning
        for meaning, words in {
            "start": "start startline linestart fromline startlineoneindexed offset lineoffset",
            "end": "end endline lineend toline endlineoneindexedinclusive",
            "count": "limit nlines numlines maxlines linecount head",
            "pair": "viewrange linerange lineranges range ranges",
            "whole": "shouldreadentirefile",
            "part": """
                tail line lines linenumber length pages cells cellid spanids symbols indentation
                columnoffset byteoffset maxchars maxbytes""",
        }.items()
        for word in words.split()
    }
)
"""The meaning of an argument about lines.

``whole`` is true or says nothing, a ``part`` says only that not all was read.
"""

EXIT_KEYS = ("exitCode", "exit_code", "returncode", "return_code", "exit_status", "exitStatus")
"""Fields of a JSON result, or of its ``metadata``, that hold the exit code."""

_CODE = r"(-?[0-9]{1,10})"

EXIT_CODE_AT_START = re.compile(
    rf"""
    \A(?:Error:\s)?Exit\ code:?\ {_CODE}[ \t]*$  # Claude Code, Codex, Cursor
    | ^Process\ exited\ with\ code\ {_CODE}$     # Codex exec_command
    | \A<returncode>{_CODE}</returncode>         # mini-swe-agent
    | \A(?:Error:\s)?Command\ (?=exec|failed|")  # Roo Code, Zed, execa
      (?s:.{{0,250}}?)[Ee]xit\ code:?\ {_CODE}\b
    """,
    re.VERBOSE | re.MULTILINE,
)
"""The exit code at the beginning of a text, as programs print it."""

EXIT_CODE_AT_END = re.compile(
    rf"""
    \[(?:The\ command\ completed|Command\ finished)\ with\ exit\ code\ {_CODE}\.?\]  # OpenHands
    | ^\[Process\ exited\ with\ code\ {_CODE}\]\Z                                    # Droid
    | ^Command\ exited\ with\ code\ {_CODE}\Z                                        # pi, VS Code
    | <(?:shellId:\ \S+\ )?(?:completed|exited)\ with\ exit\ code\ {_CODE}>\Z        # Copilot CLI
    | ^Exit\ Code:\ {_CODE}$                                                         # Gemini CLI
    """,
    re.VERBOSE | re.MULTILINE,
)
"""The exit code at the end of a text, as programs print it."""
