"""The parts of the pages that follow from the code, by what they are about.

`PARTS` are written into pages, between two marks; `FILES` are whole files.
"""

from __future__ import annotations

from collections.abc import Callable

from . import (
    command,
    diagrams,
    exports,
    faces,
    formats,
    library,
    logs,
    names,
    performance,
    picture,
    policies,
    requirements,
    rules,
    storage,
)

PARTS: dict[str, Callable[[], str]] = {
    "methods": library.methods,
    "async_methods": library.async_methods,
    "scoped_methods": library.scoped_methods,
    "stream_methods": library.stream_methods,
    "records": library.record_list,
    "values": library.values,
    "errors": library.error_list,
    "functions": library.functions,
    "public_names": names.public_list,
    "policy_fields": policies.policy_fields,
    "policies": policies.policies,
    "reasons": rules.reasons,
    "steps": rules.steps,
    "kinds": rules.kinds,
    "tool_rules": rules.tool_rules,
    "formats": formats.formats,
    "layers": rules.layers,
    "log_lines": logs.log_lines,
    "transcripts": rules.transcript_kinds,
    "homes": rules.homes,
    "tables": storage.tables,
    "triggers": storage.triggers,
    "changing": storage.changing,
    "views": storage.views,
    "changes": diagrams.changes,
    "measured_growing": performance.measured_on("scale"),
    "growing": performance.growing_table,
    "many": performance.many_table,
    "crowds": performance.crowd_table,
    "measured_peers": performance.measured_on("peers"),
    "sides": performance.sides,
    "peers": performance.peers,
    "waits": performance.waits,
    "faster": performance.faster,
    "misses": performance.misses,
    "requirements": requirements.requirements,
}

FILES: dict[str, Callable[[], str]] = {
    "store/face/operations.py": faces.operations,
    "store/face/async_operations.py": faces.async_operations,
    "docs/view.svg": picture.session_picture,
    "docs/pipeline.svg": diagrams.pipeline,
    "docs/states.svg": diagrams.states,
    "docs/performance-growing.svg": performance.growing_plot,
    "docs/performance-many.svg": performance.many_plot,
    "docs/performance-crowd.svg": performance.crowd_plot,
    "docs/performance-peers.svg": performance.peers_plot,
    **exports.EXPORTS,
}


def part(name: str) -> str:
    """Return a part by its name, that of a command being ``command`` and its words."""
    first, *words = name.split()
    return command.command(tuple(words)) if first == "command" else PARTS[name]()
