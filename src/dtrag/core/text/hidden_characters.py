"""Invisible characters and chat-template marks in untrusted text: models read them, people do not see them.

Bidirectional controls change the displayed order; zero-width characters, tags and variation selectors can hide text.
The joiners U+200C and U+200D are kept where scripts and emoji need them.
"""

from __future__ import annotations

import re

from dtrag.core.text.patterns import explained

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ZERO_WIDTH = "\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
_TAGS = "\U000e0000-\U000e007f"
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"
# Arabic and the scripts around it, Indic scripts, Myanmar, Khmer, Mongolian, and forms of Arabic letters.
_JOINING = "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_EMOJI = "\u00a9\u00ae\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_CJK = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIDDEN = re.compile(
    f"[{_BIDI}{_ZERO_WIDTH}{_TAGS}{_CONTROLS}]"
    f"|(?<![{_JOINING}])\u200c|\u200c(?![{_JOINING}])"
    f"|(?<![{_JOINING}{_EMOJI}])\u200d|(?<=[{_EMOJI}])\u200d(?![{_EMOJI}])"
    f"|(?<![{_CJK}])[\U000e0100-\U000e01ef]"
)
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_NAMES = (
    "im_start|im_end|im_sep|start_of_turn|end_of_turn|start_of_role|end_of_role|end_of_text|endoftext|bos|eos|pad|unk"
    "|s|sys|system|user|assistant|human|inst|think|thinking|tool_call|tool_calls|tool_response|tool_results"
    "|function_call|begin_of_text|start_header_id|end_header_id|eot_id|turn|channel|message"
)
_TEMPLATE = explained(
    rf"<(?=[|｜])|(?<=[|｜])>|<{{1,2}}(?=/?(?:{_NAMES})>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|THINK|IMG)\])",
    flags=re.I,
    finds=("<|im_start", "[INST]"),
    refuses=("x < y", "[INSTALL]"),
)


def neutralised(text: str) -> str:
    """The text for a prompt: without hidden characters, and without functional chat-template marks.

    Marks stay readable: a blank after their first character (`< |im_start| >`, `[ INST]`) disables them.
    """
    shown = _HIDDEN.sub("", _LINE_ENDS.sub("\n", text))
    return _TEMPLATE.sub(lambda match: f" {match[0]}" if match[0].endswith(">") else f"{match[0]} ", shown)


def visible(text: str) -> str:
    """The text for display: each hidden character as its code point, `<U+202E>`."""
    return _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def has_controls(text: str, allowed: str = "") -> bool:
    """Whether the text has C0 or C1 control characters or DEL, other than those in `allowed`."""
    if text.isprintable():
        return False
    return any((ord(sign) < 32 or 127 <= ord(sign) < 160) and sign not in allowed for sign in text)
