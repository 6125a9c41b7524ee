"""The suites that agent frameworks ship, run with the store's classes in the place of theirs."""
