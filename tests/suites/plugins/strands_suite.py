"""Puts `store.adapters.strands.Repository` in the place of the repository of the tests."""

from __future__ import annotations

from tests.fixtures import mock_session_repository

from store import Store
from store.adapters.strands import Repository


class MockedSessionRepository(Repository):
    """Our repository, each with a store of its own."""

    def __init__(self) -> None:
        super().__init__(Store(":memory:", durability="normal"))


mock_session_repository.MockedSessionRepository = MockedSessionRepository
