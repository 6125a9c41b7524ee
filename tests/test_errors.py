"""What each error says to a program: the status of a response, and whether to call again."""

from __future__ import annotations

import pickle

import pytest

from store import errors
from store.errors import StoreError

TABLE = {
    404: "SessionNotFound MessageNotFound DraftNotFound",
    409: "SessionExists Conflict HeadMoved DraftBusy DraftEnded NothingToUndo",
    400: (
        "InvalidMessage InvalidValue InvalidPolicy PositionOutOfRange UnknownTranscript QueryRefused"
    ),
    403: "ReadOnly",
    413: "LimitExceeded",
    423: "StoreBusy",
    503: "Unavailable ConnectionLost",
    507: "StoreFull",
}
STATUSES = {name: status for status, names in TABLE.items() for name in names.split()}
AGAIN = {"StoreBusy", "Unavailable"}
CLASSES = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, StoreError)
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda each: each.__name__)
def test_each_error_has_a_status_and_says_whether_to_call_again(kind: type[StoreError]) -> None:
    """All that is not in the table is 500, and nothing but two may be called again as it is."""
    assert kind.status == STATUSES.get(kind.__name__, 500)
    assert kind.retry is (kind.__name__ in AGAIN)


def test_both_reach_another_process() -> None:
    """They are of the class, so an error that was pickled has them."""
    error = pickle.loads(pickle.dumps(errors.StoreBusy("held")))
    assert (error.status, error.retry) == (423, True)
