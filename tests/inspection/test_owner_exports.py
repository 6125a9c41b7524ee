"""Everything of one owner as a file: all of theirs, and of others what their sessions show."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import Run
from conversations import NOW, Agent
from test_whole import DEEDS, sessions_of, told

from store import Store
from store.errors import InvalidValue, StoreError
from store.exporting import export_store
from store.importing import import_file
from store.inspection.dump import OTHER_SESSION

OWNERS = ("ann", "bob")


def live_together(store: Store, seed: int, steps: int) -> None:
    """Let two owners fork each other's sessions, and anything happen to these."""
    chance = random.Random(seed)
    for owner in OWNERS:
        store.create_session(f"of-{owner}", owner=owner, now=NOW)
        store.append(f"of-{owner}", Agent(seed).run(), now=NOW)
    for number in range(steps):
        session = chance.choice(sessions_of(store))
        with suppress(StoreError, ZeroDivisionError):  # what is refused changes nothing
            if number % 4:
                chance.choice(DEEDS)(store, session.id, chance.randrange(10_000))
                continue
            owner = chance.choice(OWNERS)
            name = f"{owner}-from-{session.owner}-{number}"
            store.fork(session.id, chance.randint(0, session.head), name, owner=owner, now=NOW)
            words = [{"role": "user", "content": f"secret of {owner} {number}."}]
            store.append(name, words, now=NOW)
            store.annotate(name, store.session(name).head, "rating", number, now=NOW)


@pytest.mark.sqlite_only
@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(12))
def test_an_owners_sessions_come_back_as_they_were(tmp_path: Path, seed: int) -> None:
    """With views, branches, notes and costs; of others nothing but the messages that they show."""
    with Store(tmp_path / "one.db") as store, Store(tmp_path / "copy.db") as copy:
        live_together(store, seed, 30)
        of_ann = [each for each in sessions_of(store) if each.owner == "ann"]
        file = export_store(store, tmp_path / "ann.jsonl", owner="ann")
        assert file.sessions == len(of_ann)
        report = import_file(copy, file.path)
        assert report.notes == []
        assert copy.verify() == []
        assert {each.id for each in sessions_of(copy)} == {each.id for each in of_ann}
        for session in of_ann:
            source = session.forked_from
            kept = source if source in {each.id for each in of_ann} else source and OTHER_SESSION
            mine, theirs = list(told(copy, session)), list(told(store, session))
            assert mine == [session._replace(forked_from=kept), *theirs[1:]]
        written = file.path.read_text("utf-8")
        shown = {
            str(each.message.get("content"))
            for session in of_ann
            for branch in store.branches(session.id)
            for each in store.messages(session.id, branch=branch.branch)
        }
        for number in range(30):
            secret = f"secret of bob {number}."
            assert (secret in written) is (secret in shown), secret
        for session in sessions_of(store):
            if session.owner != "ann":
                assert f'"{session.id}"' not in written


@pytest.mark.sqlite_only
def test_a_scoped_store_exports_its_owner(tmp_path: Path, run: Run) -> None:
    """And nobody else, however it is asked; the command writes the same file."""
    with Store("convostore.db") as store:
        live_together(store, 5, 12)
        first = export_store(store.scoped("bob"), "bob.jsonl")
        with pytest.raises(InvalidValue, match="another owner"):
            export_store(store.scoped("bob"), "ann.jsonl", owner="ann")
        assert export_store(store, "nobody.jsonl", owner="cyd").sessions == 0
        told_of: list[tuple[int, int]] = []
        export_store(store, "ann.jsonl", owner="ann", progress=lambda *each: told_of.append(each))
        assert told_of[-1] == (len(told_of), len(told_of))
    run("export", "--all", "--owner", "bob", "-o", "again.jsonl")
    again = Path("again.jsonl").read_text("utf-8").splitlines()
    differing = [
        line
        for line, other in zip(again, first.path.read_text("utf-8").splitlines(), strict=True)
        if line != other and not line.startswith('{"erasures"')  # they have the moment
    ]
    assert differing == []
    refused = run("export", "of-ann", "--owner", "ann")
    assert refused.status == 2
    assert "add --all" in refused.err
