"""The types of the fields of a policy, and the base of the classes that group them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ..text import check_text

PolicyToolKind = Literal["terminal", "file_read", "file_edit", "search", "list", "todo", "other"]
"""The kinds of tools that rules tell apart."""

PolicyText = Annotated[str, AfterValidator(check_text)]
CountNumber = Annotated[int, Field(ge=0, le=2**62)]
PositiveNumber = Annotated[int, Field(ge=1, le=2**62)]
RatioNumber = Annotated[float, Field(gt=0, le=1)]


class PolicyFieldGroup(BaseModel):
    """The base of a group of fields, which `Policy` joins with the others.

    A group alone is never validated, so no validator is built for it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
