"""Masks: what looks like a key, and whose home a path is in, are covered; all else stays."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from store.exporting import mask
from store.exporting.masks import DOTS, mask_value

BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ" * 2
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
A36 = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

KEYS = [
    (f"sk-{A36}", f"sk-{DOTS}"),
    (f"use sk-ant-api03-{A36}_x.", f"use sk-{DOTS}."),
    (f"ghp_{A36}", f"ghp_{DOTS}"),
    (f"github_pat_11AAA_{A36}", f"github_pat_{DOTS}"),
    (f"glpat-{A36}", f"glpat-{DOTS}"),
    ("AKIAIOSFODNN7EXAMPLE", f"AKIA{DOTS}"),
    (f"AIza{A36}", f"AIza{DOTS}"),
    ("xoxb-123456789012-abcdef", f"xoxb-{DOTS}"),
    (f"hf_{A36}", f"hf_{DOTS}"),
    (f"sk_live_{A36}", f"sk_live_{DOTS}"),
    (f"token {JWT} there", f"token eyJ{DOTS} there"),
    (
        f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\nab==\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN RSA PRIVATE KEY-----{DOTS}\n-----END RSA PRIVATE KEY-----",
    ),
    (
        f"-----BEGIN PRIVATE KEY-----\\n{BODY}\\nit was cut",
        f"-----BEGIN PRIVATE KEY-----{DOTS}\\nit was cut",
    ),
    (
        f"     1→-----BEGIN PRIVATE KEY-----\n     2→{BODY}",
        f"     1→-----BEGIN PRIVATE KEY-----{DOTS}",
    ),
    ("Authorization: Bearer abc.def-123456", f"Authorization: Bearer {DOTS}"),
    ('"Authorization": "Basic dXNlcjpwYXNz"', f'"Authorization": "Basic {DOTS}"'),
    ("authorization: 0123456789abcdef", f"authorization: {DOTS}"),
    ("-H 'x: Bearer 0123456789abcdef'", f"-H 'x: Bearer {DOTS}'"),
    ("password=hunter2", f"password={DOTS}"),
    ("DB_PASSWORD=hunter2 run", f"DB_PASSWORD={DOTS} run"),
    ("password: correct-horse", f"password: {DOTS}"),
    ('{"api_key": "0123abcd"}', f'{{"api_key": "{DOTS}"}}'),
    ('{\\"apiKey\\": \\"0123abcd\\"}', f'{{\\"apiKey\\": \\"{DOTS}\\"}}'),
    ("client_secret = 'abcdefgh'", f"client_secret = '{DOTS}'"),
    ("postgresql://ann:hunter2@db/x", f"postgresql://ann:{DOTS}@db/x"),
    ("https://hooks.slack.com/services/T00/B00/xyz", f"https://hooks.slack.com/services/{DOTS}"),
]
HOMES = [
    ("/home/ann/src/a.py", "~/src/a.py"),
    ("in /Users/ann.lee.", "in ~."),
    ("file:///home/ann/a", "file://~/a"),
    ('{"path": "C:\\\\Users\\\\ann\\\\a"}', '{"path": "~\\\\a"}'),
    ("D:/Users/ann/a", "~/a"),
    ("first\\n/home/ann/a", "first\\n~/a"),
    ("cc -I/home/ann/include", "cc -I~/include"),
    ("/" + "root/.ssh", "~/.ssh"),
    ("~/.claude/projects/-home-ann-src/x", "~/.claude/projects/~-src/x"),
    (f"{Path.home()}/notes", "~/notes"),
]
PLAIN = [
    "sk-estimator-fitted-status of a task-sk-list",
    "src/home/components/page.tsx and https://example.com/home/ann",
    "/home/$USER and /Users/Shared/x, /rooted",
    "max_tokens=4096, token=next_token(), password: str, password=None, password=args.password",
    "def login(password): return password",
    "the password is not said; keys: a, b",
    "AKIA is a prefix, eyJ too; ghp_ as well",
    "the basic authorization and a bearer of news",
    "Authorization: Bearer $TOKEN, https://oauth2:${TOKEN}@host",
    'os.environ["API_KEY"], "$TOKEN", token="{token}"',
]


@pytest.mark.sqlite_only
@pytest.mark.parametrize(("text", "masked"), KEYS)
def test_what_looks_like_a_key_is_covered(text: str, masked: str) -> None:
    """Once; its first letters tell what it was."""
    assert mask(text) == (masked, 0, 1)
    assert mask(f"see {text}\n").text == f"see {masked}\n"
    assert mask(masked) == (masked, 0, 0)


@pytest.mark.sqlite_only
@pytest.mark.parametrize(("text", "masked"), HOMES)
def test_a_home_folder_is_covered(text: str, masked: str) -> None:
    """Whose ever it is, on each system, in JSON too."""
    assert mask(text) == (masked, 1, 0)
    assert mask(masked) == (masked, 0, 0)


@pytest.mark.sqlite_only
@pytest.mark.parametrize("text", PLAIN)
def test_all_else_stays(text: str) -> None:
    """Code above all."""
    assert mask(text) == (text, 0, 0)


@pytest.mark.sqlite_only
def test_a_value_is_masked_in_all_its_texts() -> None:
    """Its keys too, and a text under the name of a secret whole; bytes of a picture stay."""
    counts: Counter[str] = Counter()
    packed = "AKIA" + "A" * 5_000
    given = {"/home/ann/a": [f"sk-{A36}", 1, None], "dbPassword": "x y", "data": packed}
    assert mask_value(given, counts) == {
        "~/a": [f"sk-{DOTS}", 1, None],
        "dbPassword": DOTS,
        "data": packed,
    }
    assert counts == {"keys": 2, "homes": 0}
