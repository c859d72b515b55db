"""Bytes to clean text: which encoding a file is in, and which characters never reach the index.

Korean files come as UTF-8, as CP949 (the Windows superset of EUC-KR) and as UTF-16. UTF-8 is tried before CP949
because CP949 accepts many UTF-8 byte pairs, while real CP949 text is practically never well-formed UTF-8.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

SAMPLE_BYTES = 1 << 16
BINARY_NUL_SHARE = 0.01
"""Text that is not UTF-16 has at most a stray NUL; more than 1 % of them means a binary file."""
MIN_UTF16_NUL_SHARE = 0.02
"""Spaces, digits and line ends have a zero byte in UTF-16: at least one character in 25 in any script with spaces."""
PLAUSIBLE_SHARE = 0.8

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PLAUSIBLE = re.compile(
    "[\t\n\r\x20-\x7e\u00a0-\u024f\u0370-\u052f\u1100-\u11ff\u2010-\u203a\u3000-\u318f가-힣\uff00-\uffef]"
)
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_DROPPED = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufeff\U000e0000-\U000e007f]")
_SUSPECT = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ud800-\udfff\ufeff\U000e0000-\U000e007f]")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Text fit for a `ParsedDocument`, and how many tag characters (invisible ASCII twins) were taken out of it."""

    text: str
    tag_characters: int = 0


def clean(text: str) -> Cleaned:
    """NFC text with `\\n` line ends, without NUL and other C0 controls, lone surrogates, BOMs and tag characters."""
    tags = 0
    if _SUSPECT.search(text):
        tags = sum("\U000e0000" <= character <= "\U000e007f" for character in text)
        text = _DROPPED.sub("", _LINE_ENDS.sub("\n", text))
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    return Cleaned(text, tags)


def clean_line(text: str) -> str:
    """`clean` for a title or a cell: one line, runs of white space as one space."""
    return " ".join(clean(text).text.split())


def decode(data: bytes, declared: str | None = None) -> str:
    """The text of a file's bytes, not cleaned yet. `declared`: the encoding that the file itself names, if any.

    Raises `ParseFailed` naming the encodings tried.
    """
    for encoding in _candidates(data[:SAMPLE_BYTES], declared):
        try:
            return data.decode(encoding, errors="surrogatepass" if encoding.startswith("utf-") else "strict")
        except (UnicodeDecodeError, LookupError):
            continue
    raise _undecodable(declared)


def encoding_of(path: Path) -> str:
    """The encoding of a file of any size, found by decoding all of it piece by piece. Raises `ParseFailed`."""
    with path.open("rb") as file:
        candidates = _candidates(file.read(SAMPLE_BYTES), None)
    for encoding in candidates:
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    decoder.decode(piece)
                decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        return encoding
    raise _undecodable(None)


def utf16_of(sample: bytes) -> str | None:
    """The UTF-16 variant (or UTF-32 with a BOM) that a file's first bytes are in, or None."""
    for mark, encoding in _BOMS[1:]:
        if sample.startswith(mark):
            return encoding
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if even + odd < MIN_UTF16_NUL_SHARE * len(sample) or min(even, odd) > 0.05 * max(even, odd):
        return None
    encoding = "utf-16-le" if odd > even else "utf-16-be"
    text = sample[: len(sample) // 2 * 2].decode(encoding, errors="replace")
    # ASCII with a stray NUL reads as CJK ideographs in UTF-16, which is why those do not count as plausible here.
    return encoding if len(_PLAUSIBLE.findall(text)) >= PLAUSIBLE_SHARE * len(text) else None


def _candidates(sample: bytes, declared: str | None) -> list[str]:
    if sample.startswith(codecs.BOM_UTF8):
        return ["utf-8-sig"]
    utf16 = utf16_of(sample)
    if utf16 is not None:
        return [utf16]
    if sample.count(0) > max(2, BINARY_NUL_SHARE * len(sample)):
        raise ParseFailed(stated("file_binary", "it is a binary file, not text"))
    return ["utf-8", *([declared] if declared else []), "cp949"]


def _undecodable(declared: str | None) -> ParseFailed:
    tried = ["UTF-8", "UTF-16", *([declared.upper()[:20]] if declared else []), "CP949/EUC-KR"]
    return ParseFailed(
        stated(
            "file_encoding",
            "its characters are in none of the encodings tried ({tried}); save it as UTF-8",
            tried=", ".join(tried),
        )
    )
