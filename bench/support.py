"""What the check of a model's sentences catches, and what it wrongly marks: pipeline/answer/grounding.py alone.

python bench/support.py ../shared/data [--sentences 400] [--embedder none|auto]

Honest sentences: those of people's and models' own wording that annotators found faithful (FaithBench sentences without
an annotation, KLUE entailments), and sentences of passages to the letter. Each is changed in one thing: a number, a
name (a noun in Korean), a "not" put in, or it comes from another source altogether. Every sentence cites its source,
which stands among four others. The thresholds in core/answers/grounding.py were chosen on the even rows; the odd
rows are shown.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dtrag.adapters.embedders import factory
from dtrag.core.answers.grounding import claim_of
from dtrag.core.documents import SearchResult
from dtrag.core.text.analysis import language, sentences
from dtrag.pipeline.answer.grounding import check
from dtrag.ports import Embedder
from dtrag.settings import Settings

Pair = tuple[str, str]
"""A source and an honest sentence about it."""
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_NOUN = re.compile(r"(?<![가-힣])[가-힣]{2,5}(?=(?:은|는|이|가|을|를|의|에서)\s)")
_AUXILIARY = re.compile(r"\b(is|was|are|were|has|had|have|can|could|will|would|should|may|did|does)\b (?!not\b)")
_KOREAN_NOT = (
    ("있습니다", "없습니다"), ("합니다", "하지 않습니다"), ("됩니다", "되지 않습니다"), ("입니다", "이 아닙니다"),
    ("했습니다", "하지 않았습니다"),
    ("있다", "없다"), ("있었다", "없었다"), ("한다", "하지 않는다"), ("된다", "되지 않는다"),
    ("했다", "하지 않았다"), ("하였다", "하지 않았다"), ("되었다", "되지 않았다"),
    ("됐다", "되지 않았다"), ("이다", "이 아니다"),
    ("이었다", "이 아니었다"), ("였다", "가 아니었다"),
)  # fmt: skip


def changed_number(sentence: str, other: str, rng: random.Random) -> str | None:
    found = list(_NUMBER.finditer(sentence))
    if not found:
        return None
    one = rng.choice(found)
    digits = [*one.group()]
    place = rng.randrange(len(digits))
    digits[place] = rng.choice([digit for digit in "123456789" if digit != digits[place]])
    return sentence[: one.start()] + "".join(digits) + sentence[one.end() :]


def swapped_name(sentence: str, other: str, rng: random.Random) -> str | None:
    pattern = _NOUN if language(sentence) == "ko" else _NAME
    own, foreign = list(pattern.finditer(sentence)), [match.group() for match in pattern.finditer(other)]
    foreign = [name for name in foreign if name not in sentence]
    if not own or not foreign:
        return None
    one = rng.choice(own)
    return sentence[: one.start()] + rng.choice(foreign) + sentence[one.end() :]


def inserted_not(sentence: str, other: str, rng: random.Random) -> str | None:
    if language(sentence) == "ko":
        bare = sentence.rstrip(".")
        for ending, denial in sorted(_KOREAN_NOT, key=lambda pair: -len(pair[0])):
            if bare.endswith(ending):
                return bare.removesuffix(ending) + denial + "."
        return None
    found = _AUXILIARY.search(sentence)
    return sentence[: found.end()] + "not " + sentence[found.end() :] if found else None


def foreign_sentence(sentence: str, other: str, rng: random.Random) -> str | None:
    return other


EDITS: dict[str, Callable[[str, str, random.Random], str | None]] = {
    "a number changed": changed_number,
    "a name swapped": swapped_name,
    "a not put in": inserted_not,
    "from elsewhere": foreign_sentence,
}


def faithbench(folder: Path) -> Iterator[Pair]:
    for row in _rows(folder / "faithbench-dev" / "faithfulness.jsonl"):
        wrong = [(span["start"], span["end"]) for span in row["spans"]]
        for start, end in sentences(row["response"]):
            text = row["response"][start:end]
            meta = re.search(r"summary|passage|core pieces|:$|\*\*", text, re.I)
            if not meta and not any(first < end and start < last for first, last in wrong):
                yield row["source"], text


def klue(folder: Path) -> Iterator[Pair]:
    for row in _rows(folder / "klue-nli-dev" / "faithfulness.jsonl"):
        if row["label"] == "entailment":
            yield row["source"], row["response"]


def verbatim(corpus: Path) -> Iterator[Pair]:
    for row in _rows(corpus):
        text = row["text"]
        spans = [(start, end) for start, end in sentences(text) if 30 <= end - start <= 300]
        if spans:
            start, end = spans[len(spans) // 2]
            yield text, text[start:end]


def _rows(file: Path) -> Iterator[dict[str, object]]:  # type: ignore[type-arg, unused-ignore]
    for line in file.read_text("utf-8").splitlines():
        yield json.loads(line)


def marked(sentence: str, sources: Sequence[str], embedder: Embedder | None) -> bool:
    """Whether the sentence, which cites the first of the sources, is marked as not supported."""
    passages = [SearchResult(f"c{number}", text) for number, text in enumerate(sources)]
    found = check(f"{' '.join(sentence.split())} [1]", passages, embedder=embedder).sentences
    return any(not one.supported for one in found)


def measure(name: str, pairs: Sequence[Pair], embedder: Embedder | None) -> None:
    rng = random.Random(5)
    pairs = [pair for pair in pairs if claim_of(pair[1]).words]
    sources = [source for source, _ in pairs]
    outcomes: dict[str, list[bool]] = {"honest": [], **{edit: [] for edit in EDITS}}
    for number, (source, sentence) in enumerate(pairs):
        other = pairs[(number + len(pairs) // 2) % len(pairs)]
        others = [text for text in rng.sample(sources, min(12, len(sources))) if text not in (source, other[0])][:4]
        outcomes["honest"].append(marked(sentence, [source, *others], embedder))
        if other[0] == source:
            continue
        for edit, change in EDITS.items():
            edited = change(sentence, other[1], rng)
            if edited is not None and edited != sentence:
                outcomes[edit].append(marked(edited, [source, *others], embedder))
    cells = " | ".join(f"{sum(row) / max(1, len(row)):.3f} ({len(row)})" for row in outcomes.values())
    print(f"| {name} | {cells} |", flush=True)


def main(folder: Path, most: int, embedder: str, half: int) -> None:
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as data_dir:
        speaker = factory.choose(Settings.load(environ={}, data_dir=data_dir, embedder=embedder))
    print("| sentences | honest, marked | " + " | ".join(f"{edit}, marked" for edit in EDITS) + " |")
    print("|---" * (len(EDITS) + 2) + "|")
    sets: list[tuple[str, Iterator[Pair], bool]] = [
        ("FaithBench, faithful", faithbench(folder), True),
        ("SQuAD, to the letter", verbatim(folder / "squad2-dev" / "corpus.jsonl"), True),
        ("KLUE, entailed", klue(folder), False),
        ("KorQuAD, to the letter", verbatim(folder / "korquad1-dev" / "corpus.jsonl"), False),
    ]
    for name, pairs, english in sets:
        rows = list(pairs)[half::2]
        measure(name, rows[:: max(1, len(rows) // most)], speaker if english else None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--half", type=int, default=1, choices=(0, 1))
    given = parser.parse_args()
    main(given.folder, given.sentences, given.embedder, given.half)
