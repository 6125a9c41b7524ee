"""The frameworks, the versions that are tried, and the suites that each ships."""

from __future__ import annotations

from typing import NamedTuple


class Suite(NamedTuple):
    """Files of tests and how they are run.

    They lie in the ``sdist`` of a framework, or, without one, in the project. ``plugin`` is the
    module that puts the store's class in the place of theirs. A smoke runs ``smoke`` only.
    """

    title: str
    files: tuple[str, ...]
    sdist: str | None = None
    plugin: str | None = None
    smoke: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Framework(NamedTuple):
    """A framework by the name of its extra: what is installed for it, and its suites."""

    name: str
    packages: tuple[str, ...]
    suites: tuple[Suite, ...]
    beside: tuple[str, ...] = ()
    """What its suites need besides."""
    in_smoke: bool = True
    """Whether a smoke runs a part of them."""


def build_own_suite(*files: str, title: str = "ours") -> Suite:
    """Return the suite of the project's own tests of an adapter, and of its page."""
    own = tuple(f"tests/adapters/{file}" for file in (*files, "test_adapter_pages.py"))
    return Suite(title, own, options=("-p", "no:asyncio"))


OPENAI_AGENTS = "openai-agents==0.24.0"
MEMORY_FILES = (
    "tests/memory/test_session.py",
    "tests/memory/test_session_limit.py",
    "tests/memory/test_session_persistence_sanitize.py",
    "tests/memory/test_session_context_wrapper.py",
)
BRANCHES_FILES = ("tests/extensions/memory/test_advanced_sqlite_session.py",)

CLAUDE = "claude-agent-sdk==0.2.187"
CLAUDE_FILES = (
    "tests/test_session_helpers_store.py",
    "tests/test_session_import.py",
    "tests/test_session_resume.py",
    "tests/test_session_store_conformance.py",
    "tests/test_session_summary.py",
    "tests/test_transcript_mirror.py",
)
STRANDS = "strands-agents==1.62.0"
STRANDS_FILES = ("tests/strands/session/test_repository_session_manager.py",)
LANGCHAIN = "langchain-community==0.4.2"
HISTORY_FILES = ("tests/unit_tests/chat_message_histories/test_sql.py",)

LANGGRAPH_SQLITE = "langgraph-checkpoint-sqlite==3.1.2"
SAVER_FILES = (
    "tests/test_aiosqlite.py",
    "tests/test_conformance_delta.py",
    "tests/test_delta_channel_migration.py",
    "tests/test_delta_parent_walk.py",
    "tests/test_get_delta_channel_history.py",
    "tests/test_sqlite.py",
)

FRAMEWORKS = (
    Framework(
        "openai-agents",
        (OPENAI_AGENTS,),
        (
            Suite(
                "`tests/memory`: session, limit, sanitize, context_wrapper",
                MEMORY_FILES,
                OPENAI_AGENTS,
                "openai_agents_suite",
                smoke=MEMORY_FILES[1:],
            ),
            Suite(
                "14 more files, with our class for `SQLiteSession`",
                (
                    "tests/extensions/memory/test_encrypt_session.py",
                    "tests/memory/test_compaction_model_visibility.py",
                    "tests/memory/test_compaction_suffix.py",
                    "tests/memory/test_openai_responses_compaction_session.py",
                    "tests/test_agent_runner.py",
                    "tests/test_agent_runner_streamed.py",
                    "tests/test_max_turns.py",
                    "tests/test_native_tool_failure_history.py",
                    "tests/test_programmatic_tool_calling.py",
                    "tests/test_run_impl_resume_paths.py",
                    "tests/test_soft_cancel.py",
                    "tests/test_tool_batch_failure_history.py",
                    "tests/test_tool_failure_boundaries.py",
                    "tests/sandbox/test_memory.py",
                ),
                OPENAI_AGENTS,
                "openai_agents_suite",
                smoke=("tests/memory/test_compaction_suffix.py", "tests/test_soft_cancel.py"),
            ),
            Suite(
                "`tests/extensions/memory/test_advanced_sqlite_session.py`",
                BRANCHES_FILES,
                OPENAI_AGENTS,
                "openai_branches_suite",
                smoke=(f"{BRANCHES_FILES[0]}::test_pop_item_claim_is_unique_across_processes",),
            ),
            build_own_suite("test_openai_agents_adapter.py"),
        ),
        beside=("inline-snapshot", "cryptography", "aiosqlite", "greenlet", "httpx", "pytest-mock"),
    ),
    Framework(
        "pydantic-ai",
        ("pydantic-ai-slim==2.68.0",),
        (build_own_suite("test_pydantic_ai_adapter.py"),),
        beside=("openai",),  # the page's model
    ),
    Framework(
        "claude",
        (CLAUDE,),
        (
            Suite(
                "6 files about `SessionStore`",
                CLAUDE_FILES,
                CLAUDE,
                "claude_suite",
                smoke=CLAUDE_FILES[3:4],
            ),
            build_own_suite("test_claude_adapter.py"),
        ),
    ),
    Framework(
        "adk",
        ("google-adk==2.13.0",),
        (
            build_own_suite(
                "test_adk_adapter.py", title="ours, also on their services in memory and SQLite"
            ),
        ),
        ("aiosqlite",),
    ),
    Framework(
        "strands",
        (STRANDS,),
        (
            Suite("`test_repository_session_manager.py`", STRANDS_FILES, STRANDS, "strands_suite"),
            build_own_suite("test_strands_adapter.py"),
        ),
        beside=("moto", "boto3", "openai", "pytest-mock"),
    ),
    Framework(
        "langgraph",
        ("langgraph==1.2.24", "langgraph-checkpoint-conformance==0.0.2"),
        (
            Suite(
                "`langgraph-checkpoint-conformance` 0.0.2",
                ("tests/suites/langgraph_conformance.py",),
                options=("-p", "no:asyncio"),
            ),
            Suite(
                "`langgraph-checkpoint-sqlite` 3.1.2: 6 files about its savers",
                SAVER_FILES,
                LANGGRAPH_SQLITE,
                "langgraph_suite",
                smoke=SAVER_FILES[:1],
                options=("--timeout", "20"),  # one case never ends, and a file takes seconds
            ),
            build_own_suite(
                "test_langgraph_adapter.py",
                "test_langchain_adapter.py",
                title="ours, with those of LangChain's history",
            ),
        ),
        beside=("aiosqlite", "sqlite-vec"),  # what their module and their package import
    ),
    Framework(
        "langchain",
        (LANGCHAIN,),
        (
            Suite(
                "`test_sql.py`",
                HISTORY_FILES,
                LANGCHAIN,
                "langchain_suite",
                options=("--noconftest", "-o", "addopts="),
            ),
        ),
        beside=("sqlalchemy[asyncio]", "aiosqlite"),
        in_smoke=False,  # half a minute to install, of which the history uses langchain-core alone
    ),
    Framework(
        "agent-framework",
        ("agent-framework-core==1.23.0",),
        (
            build_own_suite(
                "test_agent_framework_adapter.py",
                title="ours, also on their histories in memory and files",
            ),
        ),
        beside=("agent-framework-openai",),  # the page's model
    ),
    Framework(
        "llama-index",
        ("llama-index-core==0.14.25",),
        (build_own_suite("test_llama_index_adapter.py", title="ours, also on their chat stores"),),
        # the page's model, and what their own store needs
        beside=("llama-index-llms-openai", "aiosqlite", "greenlet"),
    ),
)
"""The table that `python -m tests.suites` runs."""
