"""The class that joins all groups of fields, and policies from names and files."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, ValidationError, model_validator

from ..errors import InvalidPolicy, check_readable_to_end, describe_read_error, quote_value
from ..phrases import DEFAULT_LANGUAGE, LANGUAGE_TEXTS, Language
from .field_types import PolicyFieldGroup, PolicyText
from .prompt_cache import PromptCacheFields
from .ready_policies import FIELD_PROBLEMS, POLICIES, READY_POLICY_TEXTS, PolicyFields
from .request_contents import RequestFields
from .summaries import SummaryFields
from .tool_results import ToolResultFields
from .triggers import TriggerFields
from .turns import KeptRangeFields
from .verdicts import VerdictFields


class NameFields(PolicyFieldGroup):
    """The name of a policy and its language."""

    name: PolicyText = "default"
    language: Language = DEFAULT_LANGUAGE
    """The language of the texts below that replace something in a request.

    A given text takes precedence over that of a ready policy, and this over the language's own.
    """


class Policy(
    SummaryFields,
    KeptRangeFields,
    TriggerFields,
    PromptCacheFields,
    VerdictFields,
    RequestFields,
    ToolResultFields,
    NameFields,
):  # fields come in the order of classes from the last base to the first
    """The rules of a view; frozen, every field a keyword.

    The defaults are the default profile of S0 and S1.

    Raises InvalidPolicy for a field that does not exist or an invalid value.
    """

    model_config = ConfigDict(defer_build=False)

    if not TYPE_CHECKING:  # otherwise type checkers would not know the fields

        def __init__(self, /, **fields: Any) -> None:
            try:
                super().__init__(**fields)
            except ValidationError as error:
                problems = "; ".join(map(_describe_problem, error.errors()))
                raise InvalidPolicy(f"no such policy: {problems}") from error

    @model_validator(mode="before")
    @classmethod
    def _in_its_language(cls, fields: Any) -> Any:
        """Add the texts that are not given, in the language of the policy."""
        language = fields.get("language") if isinstance(fields, Mapping) else None
        if not isinstance(language, str) or language not in LANGUAGE_TEXTS:
            return fields
        return {**LANGUAGE_TEXTS[language], **fields}

    @classmethod
    def named(cls, name: str, /, **fields: Any) -> Policy:
        """Return a ready policy, with some fields changed.

        Raises InvalidPolicy for an unknown name or field.
        """
        language = fields.get("language")
        if not isinstance(name, str) or name not in POLICIES:
            raise InvalidPolicy(
                f"no policy is named {quote_value(name)}; there are {', '.join(POLICIES)}"
            )
        spoken = READY_POLICY_TEXTS.get(name, {})
        ready = {
            "name": name,
            **POLICIES[name],
            **next((texts for each, texts in spoken.items() if each == language), {}),
        }
        return cls(**{**ready, **fields})


Policy.__module__ = __name__.rpartition(".")[0]  # its public place, which pickles name


CHOICE_ENDINGS = ("constrained-", "literal[")
"""The endings of places in a problem if a field may be one of several things."""


def _describe_problem(found: Any) -> str:
    """Return the problem of a field, and the right value."""
    places = map(str, found["loc"])
    name = ".".join(each for each in places if not each.startswith(CHOICE_ENDINGS))
    if found["type"] == "extra_forbidden":
        return f"there is no field {name!r}{_suggest_field(name)}"
    if found["type"] in FIELD_PROBLEMS:
        right = FIELD_PROBLEMS[found["type"]].format(**found.get("ctx", {}))
        return f"{name} {right}, not {quote_value(found['input'])}"
    return f"{name}: {found['msg'].removeprefix('Value error, ')}"


def _suggest_field(name: str) -> str:
    """Return the field that a wrong name may mean; all fields if none is similar."""
    like = get_close_matches(name, Policy.model_fields, n=1)
    if like:
        return f", did you mean {like[0]!r}?"
    return f"; there are {', '.join(Policy.model_fields)}"


def check_policy(policy: object) -> Policy:
    """Return a policy as it is. Raises InvalidPolicy for any other value, such as a name."""
    if not isinstance(policy, Policy):
        raise InvalidPolicy(
            f"a policy must be a Policy (Policy.named('agent')), not {quote_value(policy)}"
        )
    return policy


def load(path: str | os.PathLike[str]) -> Policy:
    """Return a policy from a TOML file: fields by name, over the ready policy that ``base`` names.

    Raises InvalidPolicy for a file that cannot be read and for unknown or invalid fields.
    """
    fields = _read_policy_fields(path)
    base = fields.pop("base", "default")
    fields.setdefault("name", Path(path).stem)
    return Policy.named(str(base), **fields)


def _read_policy_fields(path: str | os.PathLike[str]) -> PolicyFields:
    try:
        check_readable_to_end(path)
        return tomllib.loads(Path(path).read_text("utf-8"))
    except TypeError as error:
        raise InvalidPolicy(
            f"a policy must be read from a file, not from {quote_value(path)}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidPolicy(
            f"no policy can be read from {path}: {describe_read_error(error)}"
        ) from error


STANDARD_POLICY = Policy()
"""The policy of a view that names none."""
TURNS_POLICY = Policy.named("turns")
"""The ready policy that shows finished turns in short forms."""
