"""Another project root for a session: the files of its results are derived again.

Paths are stored relative to the project, so they follow from its root. A tree has one root:
otherwise the paths of shared messages would have to be stored twice. No message changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, delete, select, update

from ..database import (
    Row,
    Statement,
    branches,
    sessions,
    tool_calls,
    tool_result_paths,
    tool_results,
)
from ..records import Session
from ..tools import ToolPath, find_call_paths
from . import lines
from .facts import INSERT_PATHS
from .lines import NO_LIMIT, Line, generate_revision
from .links import restore_arguments
from .sessions import load_session, validate_folder

_root_tree_id: BindParameter[int] = bindparam("tree_id")
SET_ROOT = Statement(
    update(sessions)
    .where(sessions.c.tree_id == bindparam("tree"))
    .values(project_root=bindparam("root"), revision=bindparam("revision"))
)
BRANCH_STARTS = Statement(
    select(branches.c.branch, branches.c.parent_position)
    .where(branches.c.tree_id == _root_tree_id)
    .order_by(branches.c.branch)
)


class AnsweringResult(NamedTuple):
    """A result, the place of the call that it answers, and whether all its paths are understood."""

    seq: int
    call_seq: int
    call_position: int
    paths_complete: int


_result_table = tool_results
ANSWERING_RESULTS = Statement(
    select(*(_result_table.c[name] for name in AnsweringResult._fields))
    .where(
        _result_table.c.tree_id == _root_tree_id,
        _result_table.c.branch == bindparam("branch"),
        _result_table.c.call_seq.is_not(None),
    )
    .order_by(_result_table.c.seq),
    row=AnsweringResult,
)
CALL_ARGUMENTS = Statement(
    select(tool_calls.c.arguments_form, tool_calls.c.arguments).where(
        lines.match_place(tool_calls), tool_calls.c.position == bindparam("position")
    )
)
DELETE_TREE_PATHS = Statement(
    delete(tool_result_paths).where(tool_result_paths.c.tree_id == _root_tree_id)
)
SET_PATHS_COMPLETE = Statement(
    update(_result_table)
    .where(
        _result_table.c.tree_id == bindparam("tree"),
        _result_table.c.branch == bindparam("of"),
        _result_table.c.seq == bindparam("place"),
    )
    .values(paths_complete=bindparam("complete"))
)


def set_project_root(
    connection: Connection,
    session_id: str,
    project_root: str | os.PathLike[str] | None,
    *,
    expected: str | None = None,
) -> Session:
    """Give a session, and all that share its tree, another project root (None: none).

    The files that were read and changed are derived again for all their messages, which takes a
    while for long lines. The session keeps its place in lists. ``expected`` is the revision that
    the session must have (None: any). Raises SessionNotFound, Conflict, InvalidValue.
    """
    root = validate_folder(project_root)
    pointer = lines.lock_tree(connection, session_id)
    lines.check_revision(pointer, expected)
    tree = {"tree_id": pointer.tree_id}
    SET_ROOT.run(connection, tree=pointer.tree_id, root=root, revision=generate_revision())
    found = BRANCH_STARTS.rows(connection, **tree)
    DELETE_TREE_PATHS.run(connection, **tree)
    for branch, parent_position in found:
        at_end = pointer._replace(
            branch=branch, head=NO_LIMIT, parent_position=parent_position, project_root=root
        )
        INSERT_PATHS.insert_many(connection, list(_derive_path_rows(Line(connection, at_end))))
    return load_session(connection, session_id)


def _derive_path_rows(line: Line) -> Iterator[Row]:
    """Yield the rows of the files that the results of a branch are about."""
    for answer in ANSWERING_RESULTS.rows(line.connection, **line.pointer.line):
        paths, complete = find_result_paths(line, answer)
        place = (line.pointer.tree_id, line.pointer.branch, answer.seq)
        if answer.paths_complete != complete:
            _set_paths_complete(line, place, int(complete))
        yield from ((*place, *path) for path in paths)


def find_result_paths(line: Line, answer: AnsweringResult) -> tuple[tuple[ToolPath, ...], bool]:
    """Return the findings of `find_call_paths` in the call of a result, by the root of the line."""
    place = line.place(answer.call_seq)
    stored: Any = CALL_ARGUMENTS.row(line.connection, **place, position=answer.call_position)
    arguments = None if stored is None else restore_arguments(*stored)
    pointer = line.pointer
    return find_call_paths(arguments, pointer.project_root, fold_case=bool(pointer.fold_case))


def _set_paths_complete(line: Line, place: tuple[int, int, int], complete: int) -> None:
    tree, of, seq = place
    SET_PATHS_COMPLETE.run(line.connection, tree=tree, of=of, place=seq, complete=complete)
