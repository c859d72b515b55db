"""Build hook: the wheel contains the pinned files of the embedders, taken from where they are installed."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

from dtrag.adapters.embedders.models import MODELS, REPACKED, locate, verify
from dtrag.settings import Settings


class WeightsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs in the environment of `make setup`, which has dtrag and the weights."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files. Raises `ModelDamaged` unless they are the pinned ones, byte for byte."""
        settings = Settings.load()
        for model in MODELS:
            folder = locate(model, settings)
            if folder is None:
                raise SystemExit(f"The weights of {model.name} are missing. Run: dtrag models pull {model.name}")
            verify(model, folder)
            for file in model.files:
                build_data["force_include"][str(folder / file.name)] = f"{REPACKED}/{model.name}/{file.name}"
