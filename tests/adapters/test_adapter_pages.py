"""The examples of the pages about frameworks, with a model on loopback."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from conftest import ROOT
from made_up_model import serve_model
from pages import Page, blocks

pytestmark = pytest.mark.sqlite_only
MODULES = {
    "openai-agents": "agents",
    "pydantic-ai": "pydantic_ai",
    "claude": "claude_agent_sdk",
    "strands": "strands",
    "adk": "google.adk",
    "langgraph": "langgraph.graph",
    "langchain": "langchain_core",
    "agent-framework": "agent_framework.openai",
    "llama-index": "llama_index.llms.openai",
}
"""The pages by their names, and what each needs."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_page_of_a_framework(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page shows runs from top to bottom, and prints what the page says."""
    pytest.importorskip(MODULES[name], reason=f"needs its framework: pip install -e '.[{name}]'")
    monkeypatch.chdir(tmp_path)
    for key in ("OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(key, "made-up")
    page = ROOT / "docs" / "adapters" / f"{name}.md"
    shown = Page(page)
    with serve_model() as url:
        for key in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(key, url)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url.removesuffix("/v1"))
        for block in blocks(page):
            printed = shown.run(block)
            if block.language == "python":
                assert printed == (block.output or ""), f"{page.name}:{block.line}"
    gc.collect()  # event loops that a framework left open are warned of here


def test_every_page_is_tried() -> None:
    """A new page is in the table above."""
    pages = (ROOT / "docs" / "adapters").glob("*.md")
    assert {page.stem for page in pages} == {"index", *MODULES}
