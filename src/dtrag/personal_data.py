"""The policy for personal data that the settings name (docs/how-to/personal-data.md)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dtrag.errors import InvalidInput
from dtrag.settings import Settings

if TYPE_CHECKING:
    from dtrag.core.text.personal_data_policy import PersonalDataPolicy


def mask_of(settings: Settings) -> Callable[[str], str]:
    """What masks a text for storage; the text itself unless the mode is mask. Raises `InvalidInput`."""
    return str if settings.pii == "off" else personal_data_of(settings).masked


def personal_data_of(settings: Settings) -> PersonalDataPolicy:
    """The policy of the settings; the file with own rules is read once. Raises `InvalidInput`."""
    return _policy(settings.pii, settings.pii_kinds, settings.pii_rules)


@functools.cache
def _policy(mode: str, kinds: str, file: Path | None) -> PersonalDataPolicy:
    # Imported here: commands that need no detector start faster.
    from dtrag.core.text.personal_data_policy import PersonalDataPolicy
    from dtrag.core.text.personal_data_rules import rules_of

    if file is None:
        return PersonalDataPolicy.of(mode, kinds)
    try:
        rules = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The rules for personal data cannot be read: {error}. Correct DTRAG_PII_RULES.") from error
    return PersonalDataPolicy.of(mode, kinds, rules_of(rules), rules)
