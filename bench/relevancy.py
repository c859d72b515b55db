"""How the judge without a model agrees with people about replies: python bench/relevancy.py

`bench/relevancy/pairs.jsonl` has questions with an answer that replies and one about the same subject that does not.
Those with an odd number were read while the judge was changed; those with an even number were only counted.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from dtrag.core.quality.scores import ACCEPTED
from dtrag.evaluation.judges import LexicalJudge

PAIRS = Path(__file__).with_name("relevancy") / "pairs.jsonl"


async def main(*, show: bool) -> None:
    """Print, for each part, the share of pairs that are judged as people judged them."""
    pairs = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    for pair in pairs:
        found = await LexicalJudge().relevance(pair["question"], pair["answer"])
        pair |= {"score": found.score, "agrees": (found.score >= ACCEPTED) is pair["replies"]}
        if show and not pair["agrees"]:
            print(pair["id"], found.score, pair["question"], "=>", pair["answer"], f"({found.reason})")
    print("| | pairs | agreement | replies accepted | other answers refused | replies with 0 |")
    print("|---|---|---|---|---|---|")
    for name, part in (
        ("everyday words", [pair for pair in pairs if pair["everyday"]]),
        ("words of the text", [pair for pair in pairs if not pair["everyday"]]),
        ("read", [pair for pair in pairs if int(pair["id"][:2]) % 2]),
        ("only counted", [pair for pair in pairs if not int(pair["id"][:2]) % 2]),
        ("all", pairs),
    ):
        print(f"| {name} | {len(part)} | {' | '.join(_shares(part))} |")


def _shares(pairs: list[dict[str, Any]]) -> list[str]:
    replies, others = ([pair for pair in pairs if pair["replies"] is kind] for kind in (True, False))
    shares = [sum(pair["agrees"] for pair in part) / len(part) for part in (pairs, replies, others)]
    return [f"{share:.2f}".lstrip("0") for share in shares] + [str(sum(not pair["score"] for pair in replies))]


if __name__ == "__main__":
    asyncio.run(main(show="--show" in sys.argv))
