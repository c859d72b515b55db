"""`dtrag taxonomy` from proposal to rollback, as commands."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.integration.conftest import MakeCli


def test_a_change_is_proposed_from_a_file_activated_and_rolled_back(make_cli: MakeCli) -> None:
    folder = Path(tempfile.mkdtemp(prefix="dtrag-cli-taxonomy-"))
    change, note = folder / "change.yaml", folder / "note.md"
    note.write_text("# Note\n\nGreen tea is steeped for two minutes.\n")
    change.write_text("operations:\n- {op: delete, path: Tea}\n- {op: add, path: Coffee}\n")
    cli = make_cli()
    assert cli.call("ingest", note, "--category", "Tea").code == 0
    assert cli.call("taxonomy", "propose", change).out.strip() == "2.0.0"
    seen = cli.call("taxonomy", "preview", "2.0.0", "--json").json
    assert (seen["documents"], seen["moved"][0]["from"], seen["moved"][0]["to"]) == (1, ["Tea"], [])
    assert cli.call("taxonomy", "diff", "2.0.0").out.split() == ["added", "Coffee", "removed", "Tea"]
    done = cli.call("taxonomy", "activate", "2.0.0")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    assert cli.call("taxonomy", "export").out == "Coffee: {}\n"
    assert cli.call("taxonomy", "rollback", "1.0.0").code == 0
    assert cli.call("taxonomy", "tree").out == "Tea (1)\n"
    listed = cli.call("taxonomy", "list", "--json").json["versions"]
    assert {row["version"]: row["active"] for row in listed} == {"1.0.0": True, "2.0.0": False}
    shutil.rmtree(folder)
