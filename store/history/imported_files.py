"""What an import remembers of a file, so that the unchanged file need not be read again.

It is a text of the import's own, one for each file and owner, and tells of the sessions whose
``file`` that is. It is forgotten with the messages that it may quote: when one of the sessions is
erased, redacted or comes from another file.
"""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy import BindParameter, Connection, bindparam, delete, insert, select

from ..database import BIG_INTEGER, Statement, sessions, settings
from ..errors import InvalidValue, quote_value
from ..text import is_text

_setting_name: BindParameter[str] = bindparam("setting")
LOAD_STATE = Statement(select(settings.c.value).where(settings.c.name == _setting_name))
DELETE_STATE = Statement(delete(settings).where(settings.c.name == _setting_name))
INSERT_STATE = Statement(insert(settings).values(name=_setting_name, value=bindparam("state")))
_imported_files = select(sessions.c.file, sessions.c.owner).where(
    sessions.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER), sessions.c.file.is_not(None)
)
FILES_OF_TREE = Statement(_imported_files.distinct())
FILE_OF_SESSION = Statement(_imported_files.where(sessions.c.id == bindparam("session_id")))


def load_file_state(connection: Connection, file: str, *, owner: str | None = None) -> str | None:
    """Return what the last import of a file remembered (None: nothing).

    An import asks for it by itself. Raises InvalidValue.
    """
    state: str | None = LOAD_STATE.value(connection, setting=_name_setting(file, owner))
    return state


def set_file_state(
    connection: Connection, file: str, state: str | None, *, owner: str | None = None
) -> None:
    """Remember a text about an imported file, or nothing (None).

    It is forgotten when a session of the file is erased, redacted or imported from another file. An
    import sets it by itself. Raises InvalidValue.
    """
    setting = _name_setting(file, owner)
    _check_text("a state", state or "")
    DELETE_STATE.run(connection, setting=setting)
    if state is not None:
        INSERT_STATE.run(connection, setting=setting, state=state)


def forget_file_states(connection: Connection, tree_id: int, session_id: str | None = None) -> None:
    """Forget the files of a session, or of all sessions of a tree."""
    if session_id is None:
        found = FILES_OF_TREE.rows(connection, tree_id=tree_id)
    else:
        found = FILE_OF_SESSION.rows(connection, tree_id=tree_id, session_id=session_id)
    for file, owner in found:
        for each in {None, owner}:
            DELETE_STATE.run(connection, setting=_name_setting(file, each))


def _name_setting(file: str, owner: str | None) -> str:
    """Return the name of a file's setting; a digest, as a server's keys must be short."""
    _check_text("the path of a file", file)
    _check_text("an owner", owner or "")
    told = f"{len(owner or '')} {owner or ''} {file}".encode("utf-8", "surrogatepass")
    return f"file {sha256(told).hexdigest()}"


def _check_text(name: str, value: object) -> None:
    """Raise InvalidValue for a value that is no text."""
    if not is_text(value):
        raise InvalidValue(f"{name} is a text, not {quote_value(value)}")
