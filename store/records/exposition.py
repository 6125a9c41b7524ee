"""The text format of Prometheus, in which a server of metrics reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Sample(NamedTuple):
    """A value of a family, with its labels; ``suffix`` is added to the family's name."""

    labels: dict[str, str]
    value: float
    suffix: str = ""


class Family(NamedTuple):
    """The samples of a metric, its type (``counter``, ``histogram``) and its meaning."""

    name: str
    type: str
    help: str
    samples: list[Sample]


def list_histogram_samples(
    labels: dict[str, str], limits: Iterable[float], ranges: Iterable[int], total: float
) -> Iterator[Sample]:
    """Yield the samples of a histogram; ``ranges`` has one number more than ``limits``."""
    reached = 0
    for limit, count in zip([*map(repr, limits), "+Inf"], ranges, strict=True):
        reached += count
        yield Sample({**labels, "le": limit}, reached, "_bucket")
    yield Sample(labels, total, "_sum")
    yield Sample(labels, reached, "_count")


def render_exposition(families: Iterable[Family]) -> str:
    """Return families as text; those without samples are left out."""
    lines: list[str] = []
    for family in families:
        if family.samples:
            lines.append(f"# HELP {family.name} {family.help}")
            lines.append(f"# TYPE {family.name} {family.type}")
            lines += (_render_sample(family.name, each) for each in family.samples)
    return "".join(f"{line}\n" for line in lines)


def _render_sample(name: str, sample: Sample) -> str:
    labels = ",".join(f'{key}="{_escape(value)}"' for key, value in sample.labels.items())
    value = int(sample.value) if float(sample.value).is_integer() else sample.value
    return (
        f"{name}{sample.suffix}{{{labels}}} {value}" if labels else f"{name}{sample.suffix} {value}"
    )


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
