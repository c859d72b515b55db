"""What is done with personal data: nothing, marking the documents that have some, or masking them everywhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import quote, unquote

from dtrag.core.text.personal_data import KINDS, RULES_VERSION, Detector, Kind, Mode
from dtrag.errors import InvalidInput

MODES: tuple[Mode, ...] = get_args(Mode)
FIELD = "personal_data"
"""Metadata field of documents and passages that names the kinds of personal data in them, separated by commas."""
_JOINED = re.compile(r"(?<=[^\W\d_])[-_]|_")
"""In names of files: `hong_010-1234-5678.pdf`, `hong-010-1234-5678.pdf`."""


@dataclass(frozen=True)
class PersonalDataPolicy:
    """The mode and the detector of an app. `rules` is a digest of its own rules."""

    mode: Mode = "off"
    detector: Detector = Detector()
    rules: str = ""

    @classmethod
    def of(cls, mode: str, kinds: str, own: tuple[Kind, ...] = (), rules: str = "") -> PersonalDataPolicy:
        """The policy of the settings. `rules` is the text of the file with the `own` kinds. Raises `InvalidInput`."""
        if mode not in MODES:
            raise InvalidInput(f"DTRAG_PII is {mode[:20]!r}, but must be {', '.join(MODES[:-1])} or {MODES[-1]}.")
        known = {kind.name: kind for kind in (*own, *KINDS)}
        names = [name.strip() for name in kinds.split(",") if name.strip()]
        if not names or (unknown := next((name for name in names if name not in known and name != "all"), "")):
            raise InvalidInput(
                f"DTRAG_PII_KINDS names {unknown[:30]!r}; kinds: all, {', '.join(known)}."
                if names
                else f"DTRAG_PII_KINDS names no kind; kinds: all, {', '.join(known)}."
            )
        chosen = tuple(kind for name, kind in known.items() if name in names or "all" in names)
        return cls(mode, Detector(chosen), hashlib.blake2b(rules.encode(), digest_size=4).hexdigest() if rules else "")

    @property
    def id(self) -> str:
        """Changes with everything that decides how documents are read; "" while nothing is done."""
        if self.mode == "off":
            return ""
        names = [kind.name for kind in self.detector.kinds if kind in KINDS]
        kinds = "" if len(names) == len(KINDS) else ",".join(names)
        return "-".join(filter(None, (self.mode, RULES_VERSION, kinds, self.rules)))

    @property
    def masks(self) -> bool:
        """Whether personal data are masked."""
        return self.mode == "mask"

    def masked(self, text: str, context: str = "") -> str:
        """The text for storage, of the same length in code points; `context` is the name of its field."""
        return self.detector.masked(text, context) if self.masks else text

    def masked_value(self, value: Any, context: str = "") -> Any:
        """A value of JSON with all its texts masked, keys included; a number is replaced if it is personal data."""
        if not self.masks:
            return value
        if isinstance(value, str):
            return self.masked(value, context)
        if isinstance(value, Mapping):
            return {self.masked_value(key): self.masked_value(item, str(key)) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.masked_value(item, context) for item in value]
        if isinstance(value, int) and not isinstance(value, bool):
            masked = self.masked(str(value), context)
            return value if masked == str(value) else masked
        return value

    def masked_name(self, name: str) -> str:
        """As `masked`, for a title or the name of a file, whose parts may be joined by hyphens and underscores."""
        if not self.masks:
            return name
        separate = _JOINED.sub(" ", name)
        masked = self.masked(separate)
        return "".join(old if new == other else new for old, other, new in zip(name, separate, masked, strict=True))

    def masked_address(self, address: str) -> str:
        """As `masked_name`, for the address of a file or an upload; the parts of a path are masked one by one."""
        if not self.masks:
            return address
        plain = unquote(address) if address.startswith("file:") else address
        masked = "/".join(map(self.masked_name, plain.split("/")))
        if masked == plain:
            return address
        return quote(masked, safe="/:#") if address.startswith("file:") else masked

    def without(self, mode: Mode) -> PersonalDataPolicy:
        """The same policy in another mode."""
        return replace(self, mode=mode)


OFF = PersonalDataPolicy()
"""Nothing is looked for."""
