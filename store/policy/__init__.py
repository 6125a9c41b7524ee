"""The rules of a view as data: the messages to keep, replace and repair. Knows no SQL, no clock.

The fields are grouped by the kind of rule, a module for each kind; `Policy` joins them. The ready
policies are tables, which are read without loading the class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

__all__ = [
    "FIELD_PROBLEMS",
    "LANGUAGE_TEXTS",
    "POLICIES",
    "PROMPT_CACHES",
    "READY_POLICY_TEXTS",
    "STANDARD_POLICY",
    "TURNS_POLICY",
    "CachePrices",
    "Language",
    "Policy",
    "PolicyFields",
    "PolicyToolKind",
    "check_policy",
    "load",
]

if TYPE_CHECKING:
    from .field_types import PolicyToolKind
    from .policy import STANDARD_POLICY, TURNS_POLICY, Policy, check_policy, load
    from .prompt_cache import PROMPT_CACHES, CachePrices
    from .ready_policies import (
        FIELD_PROBLEMS,
        LANGUAGE_TEXTS,
        POLICIES,
        READY_POLICY_TEXTS,
        Language,
        PolicyFields,
    )

if not TYPE_CHECKING:  # otherwise type checkers would accept any name
    __getattr__, __dir__ = attach_modules(
        __package__,
        policy="STANDARD_POLICY TURNS_POLICY Policy check_policy load",
        ready_policies=(
            "FIELD_PROBLEMS LANGUAGE_TEXTS POLICIES READY_POLICY_TEXTS Language PolicyFields"
        ),
        prompt_cache="PROMPT_CACHES CachePrices",
        field_types="PolicyToolKind",
    )
