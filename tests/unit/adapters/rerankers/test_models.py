"""Cross-encoders on disk: listing, verifying, and `pull` from a hub on the loopback."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.adapters.model_files import SUMS, verify
from dtrag.adapters.rerankers.cross_encoder import CrossEncoder
from dtrag.adapters.rerankers.models import PUBLISHED, list_models, locate, published, pull
from dtrag.errors import ModelDamaged, ModelNotFound, ModelPullFailed
from dtrag.settings import Settings
from tests.unit.adapters.rerankers.hub import COMMIT, Hub, open_hub
from tests.unit.adapters.rerankers.tiny import HIT, write_model

SMALL = PUBLISHED[0]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data with space 데이터")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with open_hub() as hub:
        yield hub


def _pulled(settings: Settings, hub: Hub) -> Path:
    return pull(SMALL.name, settings, lambda step: None, endpoint=hub.url)


def _left(settings: Settings) -> list[str]:
    models = settings.data_dir / "models"
    return sorted(str(path.relative_to(models)) for path in models.rglob("*") if path.is_file())


def test_only_models_with_permissive_licences_are_known() -> None:
    assert published("cross-encoder/ms-marco-MiniLM-L-6-v2") is SMALL
    assert {model.licence for model in PUBLISHED} <= {"Apache-2.0", "MIT"}
    assert len({model.name for model in PUBLISHED}) == len(PUBLISHED)


def test_no_model_is_installed(settings: Settings) -> None:
    for info, model in zip(list_models(settings), PUBLISHED, strict=True):
        assert (info.name, info.kind, info.state, info.dim) == (model.name, "reranker", "absent", None)
        assert (info.source, info.path, info.size) == (None, None, model.size)
        assert locate(model.name, settings) is None
    assert not settings.data_dir.exists()


def test_pull_fetches_one_revision_and_keeps_its_sums(settings: Settings, hub: Hub, tmp_path: Path) -> None:
    origin = write_model(tmp_path / "origin")
    hub.publish(SMALL.repository, SMALL.weights, origin)
    steps: list[str] = []
    folder = pull(SMALL.name, settings, steps.append, endpoint=hub.url)

    assert folder == settings.data_dir / "models" / SMALL.name == locate(SMALL.name, settings)
    assert sorted(path.name for path in folder.iterdir()) == [SUMS, "config.json", "model.onnx", "tokenizer.json"]
    assert (folder / "model.onnx").read_bytes() == (origin / "model.onnx").read_bytes()
    assert verify(SMALL.name, folder)
    assert hub.tokens == []
    assert {asked.split()[1] for asked in hub.asked if "model.onnx" not in asked} == {COMMIT}
    assert SMALL.repository in steps[0]
    assert str(folder) in steps[-1]
    (info, *others) = list_models(settings)
    assert (info.state, info.path, info.source) == ("verified", folder, "model folder")
    assert info.size == sum(path.stat().st_size for path in folder.iterdir())
    assert {other.state for other in others} == {"absent"}
    scores = CrossEncoder(folder, name=SMALL.name).score("library", ["library", "pump"], math.inf)
    assert scores is not None
    assert scores[0] > scores[1]
    assert [path.name for path in (settings.data_dir / "models").iterdir()] == ["cross-encoder"]


def test_pull_repairs_a_damaged_model(settings: Settings, hub: Hub, tmp_path: Path) -> None:
    hub.publish(SMALL.repository, SMALL.weights, write_model(tmp_path / "origin"))
    folder = _pulled(settings, hub)
    (folder / "tokenizer.json").write_text("{}")
    assert list_models(settings)[0].state == "damaged"
    with pytest.raises(ModelDamaged, match=rf"tokenizer\.json.*dtrag models pull {SMALL.name}"):
        verify(SMALL.name, folder)
    _pulled(settings, hub)
    assert list_models(settings)[0].state == "verified"


def test_a_missing_file_counts_as_damage(settings: Settings, hub: Hub, tmp_path: Path) -> None:
    hub.publish(SMALL.repository, SMALL.weights, write_model(tmp_path / "origin"))
    (_pulled(settings, hub) / "model.onnx").unlink()
    assert list_models(settings)[0].state == "damaged"


def test_files_copied_by_hand_are_reported_as_unpinned(settings: Settings) -> None:
    folder = write_model(settings.data_dir / "models" / SMALL.name)
    assert not verify(SMALL.name, folder)
    info = list_models(settings)[0]
    assert (info.state, info.path) == ("unpinned", folder)


def test_pull_refuses_a_file_with_another_sum_than_the_hub_states(settings: Settings, hub: Hub, tmp_path: Path) -> None:
    hub.publish(SMALL.repository, SMALL.weights, write_model(tmp_path / "origin"))
    hub.lies = {f"{SMALL.repository}/tokenizer.json"}
    with pytest.raises(ModelDamaged, match=r"tokenizer\.json"):
        _pulled(settings, hub)
    assert _left(settings) == []


def test_pull_tries_the_model_out(settings: Settings, hub: Hub, tmp_path: Path) -> None:
    hub.publish(SMALL.repository, SMALL.weights, write_model(tmp_path / "deaf", bias=-HIT * 10_000))
    with pytest.raises(ModelDamaged, match="does not tell an answer from another sentence"):
        _pulled(settings, hub)
    hub.files[f"{SMALL.repository}/{SMALL.weights}"] = b"<html>please log in</html>"
    with pytest.raises(ModelDamaged, match="cannot be used"):
        _pulled(settings, hub)
    assert _left(settings) == []


def test_pull_reports_missing_files(settings: Settings, hub: Hub) -> None:
    with pytest.raises(ModelPullFailed, match=rf"{SMALL.name}.*404"):
        _pulled(settings, hub)
    assert _left(settings) == []


def test_pull_without_a_network_explains_it(settings: Settings) -> None:
    with open_hub() as hub:
        gone = hub.url
    with pytest.raises(ModelPullFailed, match=rf"{SMALL.name}.*(?i:refused|connect)"):
        pull(SMALL.name, settings, lambda step: None, endpoint=gone)
    assert _left(settings) == []


def test_pull_into_an_impossible_folder_explains_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelPullFailed, match=f"{SMALL.name}.*file"):
        pull(SMALL.name, Settings(data_dir=tmp_path, model_dir=tmp_path / "file" / "models"), lambda step: None)


def test_pull_lists_its_models_for_unknown_names(settings: Settings) -> None:
    with pytest.raises(ModelNotFound, match=f"'gigantic'.*Known: {SMALL.name}, "):
        pull("gigantic", settings, lambda step: None)
