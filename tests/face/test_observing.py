"""Metrics, callbacks and spans: what a store tells of its operations."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from store import AsyncStore, Conflict, Policy, SessionNotFound, Store, StoreBusy
from store.records import Metrics, Observation

SECRET = "the words of nobody else"


def say(text: str = "hello") -> dict[str, str]:
    """Return a user's message."""
    return {"role": "user", "content": text}


def count(metrics: Metrics) -> dict[tuple[str, str], int]:
    """Return the number of operations by name and outcome."""
    return {(each.operation, each.outcome): each.number for each in metrics.operations}


@pytest.fixture
def opened(url: str) -> Iterator[Store]:
    """Give a new store with a session."""
    with Store(url, durability="normal") as store:
        store.create_session("s", title=SECRET)
        yield store


def test_operations_are_counted_without_a_callback(opened: Store) -> None:
    """By name and outcome, with their time, whatever they call within."""
    opened.append("s", say())
    for _ in range(3):
        opened.context("s")
    opened.atomically(lambda steps: steps.append("s", say()))
    opened.compact("s", Policy())
    opened.search("hello")
    opened.record_usage("s", input=7, cached=2, output=1, model="gpt-5")
    with pytest.raises(SessionNotFound):
        opened.view("nobody")
    with pytest.raises(Conflict):
        opened.append("s", say(), expected="0.0")
    found = opened.metrics()
    told = count(found)
    assert told["append", "ok"] == 1
    assert told["context", "ok"] == 3
    assert told["atomically", "ok"] == told["view", "SessionNotFound"] == 1
    assert found.conflicts == sum(told["append", name] for _, name in told if name == "Conflict")
    assert (found.cached_views, found.new_views) == (2, 1)
    assert [number for _, number in found.compactions] == [1]
    assert (found.searches, found.busy) == (1, 0)
    assert [each[:6] for each in found.models] == [("gpt-5", 1, 7, 2, 0, 1)]
    for each in found.operations:
        assert sum(each.ranges) == each.number
        assert each.seconds > 0


def test_the_text_is_that_of_prometheus(opened: Store) -> None:
    """Its own parser reads it; no word of a session is in it."""
    parser = pytest.importorskip("prometheus_client.parser")
    opened.append("s", say(SECRET))
    opened.scoped("ann").create_session("private")
    opened.observe(lambda _: None, tokens=True)
    opened.view("s", Policy(name='a "name"\\'))
    opened.record_usage("s", input=7, output=1, model="gpt-5")
    text = opened.metrics().text()
    samples = {
        (each.name, *sorted(each.labels.values())): each.value
        for family in parser.text_string_to_metric_families(text)
        for each in family.samples
    }
    assert samples["convostore_operations_total", "append", "ok"] == 1
    assert samples["convostore_operation_seconds_bucket", "+Inf", "append", "ok"] == 1
    assert samples["convostore_usage_input_tokens_total", "gpt-5"] == 7
    assert samples["convostore_view_tokens_total", 'a "name"\\'] > 0
    assert not any(word in text for word in ("nobody", "ann", "private", str(opened.database.url)))


def test_a_callback_is_told_each_operation(opened: Store) -> None:
    """Its own calls are not told, its exceptions stay in the log; it can be ended."""
    seen: list[Observation] = []

    def fail(_: Observation) -> None:
        opened.session("s")
        raise KeyError(SECRET)

    opened.observe(fail)
    end = opened.observe(seen.append)
    opened.append("s", say())
    opened.scoped("ann").create_session("a")
    opened.record_usage("s", input=7, output=1, model="gpt-5")
    end()
    opened.session("s")
    assert [(each.operation, each.session_id, each.owner) for each in seen] == [
        ("append", "s", None),
        ("create_session", "a", None),
        ("record_usage", "s", None),
    ]
    assert seen[2].values["input"] == 7
    assert all(0 < each.seconds < 60 for each in seen)


def test_a_failed_callback_is_logged_without_its_words(
    opened: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """The line names the type of the exception and its place, the record the session."""

    def fail(_: Observation) -> None:
        raise KeyError(SECRET)

    opened.observe(fail)
    assert opened.append("s", say())
    (record,) = caplog.records
    assert "KeyError" in record.message
    assert SECRET not in caplog.text
    assert vars(record)["session_id"] == "s"


def test_an_owner_is_told_what_is_theirs(opened: Store) -> None:
    """Owners are told to whoever asked; their metrics begin when they are first asked for."""
    seen: list[Observation] = []
    told: list[str | None] = []
    ann, bob = opened.scoped("ann"), opened.scoped("bob")
    assert ann.metrics().operations == ()
    ann.observe(seen.append)
    opened.observe(lambda each: told.append(each.owner), owners=True)
    for face in (ann, bob):
        face.create_session(f"of {face.owner}")
        face.record_usage(f"of {face.owner}", input=3, output=1, model=face.owner)
    opened.session("s")
    assert [each.owner for each in seen] == ["ann", "ann"]
    assert told == ["ann", "ann", "bob", "bob", None]
    found = opened.scoped("ann").metrics()
    assert count(found) == {("create_session", "ok"): 1, ("record_usage", "ok"): 1}
    assert [each.model for each in found.models] == ["ann"]
    assert {each.model for each in opened.metrics().models} == {"ann", "bob"}
    nameless = opened.scoped("")
    assert nameless.metrics().operations == ()
    opened.session("s")  # of the whole store, and not of the owner whose name is empty
    assert nameless.metrics().operations == ()


@pytest.mark.sqlite_only
def test_a_wait_for_other_writers_is_counted(url: str) -> None:
    """Also one that ended at its deadline."""
    with Store(url, timeout=0.3) as store, Store(url) as other:
        store.create_session("s")
        before = store.metrics().waits
        held, let_go = threading.Event(), threading.Event()

        def hold(_: Any) -> None:
            _.append("s", say())
            held.set()
            let_go.wait(30)

        thread = threading.Thread(target=other.atomically, args=(hold,))
        thread.start()
        held.wait(30)
        with pytest.raises(StoreBusy):
            store.append("s", say())
        threading.Timer(0.1, let_go.set).start()
        store.append("s", say())
        thread.join()
        after = store.metrics()
        assert after.busy == 1
        assert after.waits
        assert after.waits.number > (before.number if before else 0)


def test_the_awaited_faces_have_both(url: str) -> None:
    """Their counts are those of the store, however often a face is asked for."""

    async def use() -> tuple[Metrics, Metrics, list[Observation]]:
        seen: list[Observation] = []
        async with AsyncStore(url) as store:
            await store.observe(seen.append)
            await store.scoped("ann").metrics()
            await store.scoped("ann").create_session("a")
            return await store.metrics(), await store.scoped("ann").metrics(), seen

    whole, owned, seen = asyncio.run(use())
    assert count(whole) == count(owned) == {("create_session", "ok"): 1}
    assert [each.operation for each in seen] == ["create_session"]


SPANS_PROGRAM = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from store import Store, StoreError

with Store(sys.argv[1]) as store:
    store.create_session("s")  # before there is a provider
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    with trace.get_tracer("host").start_as_current_span("request") as parent:
        store.record_usage("s", input=7, output=1, model="gpt-5", provider="openai")
        try:
            store.view("nobody")
        except StoreError:
            pass
    usage, view, _ = kept.get_finished_spans()
    assert usage.parent.span_id == parent.get_span_context().span_id
    assert usage.name == usage.attributes["db.operation.name"] == "record_usage"
    assert usage.attributes["db.system.name"] == store.database.dialect
    assert usage.attributes["gen_ai.conversation.id"] == "s"
    assert usage.attributes["gen_ai.usage.input_tokens"] == 7
    assert usage.attributes["gen_ai.request.model"] == "gpt-5"
    assert 0 < usage.end_time - usage.start_time < 60e9
    assert view.attributes["error.type"] == "SessionNotFound"
    assert not view.status.is_ok
"""


def test_operations_are_spans(url: str) -> None:
    """Below the span of the caller, with the attributes of the conventions.

    In a process of its own, since a process has one provider.
    """
    pytest.importorskip("opentelemetry.sdk")
    subprocess.run([sys.executable, "-c", SPANS_PROGRAM, url], check=True)


def test_nothing_is_imported_for_spans() -> None:
    """A process that does not use OpenTelemetry never imports it."""
    program = (
        "import sys; from store import Store\n"
        "with Store(':memory:') as store: store.create_session('s'); store.metrics().text()\n"
        "assert not [each for each in sys.modules if each.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_counting_costs_little(opened: Store) -> None:
    """Of the time that a thread spends on an append, less than a twentieth on any machine."""
    observers = opened._observers

    def measure(work: Any, times: int = 200) -> float:
        found = []
        for _ in range(15):
            begun = time.thread_time()
            for _ in range(times):
                work()
            found.append(time.thread_time() - begun)
        return min(found) / times

    from store.face.calls import Call

    call = Call(len, (), {}, name="append")
    counted = measure(lambda: observers.run(call, id)) - measure(lambda: id(call))
    whole = measure(lambda: opened.append("s", say()))
    print(f"counting takes {counted * 1e6:.2f} of {whole * 1e6:.0f} microseconds")
    assert counted < whole / 20


@pytest.mark.parametrize("asked", [None, "1"])
def test_each_record_of_the_log_has_the_same_fields(
    opened: Store,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    asked: str | None,
) -> None:
    """One formatter fits all: session, seconds, and the owner of the face if that is asked for."""
    if asked:
        monkeypatch.setenv("CONVOSTORE_LOG_OWNERS", asked)
    opened.create_session("hers", owner="ann")
    opened.append("hers", {"role": "tool", "name": "Bash", "content": "x" * 100, "timestamp": 0})
    with caplog.at_level(logging.DEBUG, "store"):
        opened.scoped("ann").view("hers", Policy(terminal_keep=0))
        opened.compact("hers", Policy(), reason="manual")
        opened.verify()
    seen = [vars(each) for each in caplog.records]
    assert all({"session_id", "owner", "seconds"} <= each.keys() for each in seen)
    viewed = next(each for each in seen if each["name"] == "store.view.build")
    assert (viewed["session_id"], viewed["owner"]) == ("hers", asked and "ann")
    assert 0 < viewed["seconds"] < 60
