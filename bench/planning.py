"""How often the rules of the planner want a tool for questions that are all about documents: none is needed.

python bench/planning.py SET_FOLDER...

Each folder holds queries.jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

from dtrag.pipeline.planner import by_rules, complexity_of
from dtrag.tools.builtin import builtin_tools


def main(folders: list[Path]) -> None:
    allowed = {tool.name: tool for tool in builtin_tools()}
    asked, wanted = 0, Counter[str]()
    for folder in folders:
        rows = [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
        started = time.perf_counter()
        planned = [(question, by_rules(question, allowed)[0]) for question in rows]
        each = (time.perf_counter() - started) / len(rows)
        counts = Counter(name for _, inputs in planned for name in inputs)
        complexities = Counter(complexity_of(question) for question in rows)
        print(f"{folder.name}: {len(rows)} asked, tools {dict(counts)}, {dict(complexities)}, {each * 1e6:.0f} µs each")
        for question, inputs in planned:
            if inputs:
                print(f"    {question[:60]}  {', '.join(inputs)}")
        asked += len(rows)
        wanted += counts
    print(f"all: {asked} questions, tools {dict(wanted)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    main(parser.parse_args().folders)
