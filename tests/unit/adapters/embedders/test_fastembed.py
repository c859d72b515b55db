"""The embedder fastembed: chosen and refused everywhere, run with the real fastembed where it is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.embedders import fastembed
from dtrag.adapters.embedders.factory import choose
from dtrag.adapters.embedders.fastembed import PUBLISHED, list_models, pull
from dtrag.adapters.model_files import SUMS, sha256_of
from dtrag.delivery.cli import checks
from dtrag.errors import InvalidInput, MissingExtra, ModelDamaged, ModelNotFound
from dtrag.ports import Embedder
from dtrag.settings import Settings
from tests.contract.embedder import SemanticEmbedderContract
from tests.unit.adapters.embedders.tiny_fastembed import CONTEXT, write_model
from tests.unit.adapters.rerankers.hub import Hub, open_hub

SMALL = PUBLISHED[0]
real = pytest.mark.skipif(not fastembed.installed(), reason="needs dtrag[fastembed]")


def _settings(folder: Path, name: str = "fastembed", **more: Any) -> Settings:
    return Settings(data_dir=folder, embedder=name, **more)


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastembed, "find_spec", lambda name: None)


@pytest.fixture
def described_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if fastembed were installed, with the list of its models that these tests need."""

    class Described:
        @staticmethod
        def list_supported_models() -> list[dict[str, Any]]:
            row = {"dim": 384, "size_in_GB": 0.1, "sources": {"hf": "x/y"}, "model_file": "model.onnx"}
            row |= {"additional_files": [], "license": "mit"}
            return [row | {"model": "BAAI/bge-small-en-v1.5"}, row | {"model": "jina/nc", "license": "cc-by-nc-4.0"}]

    monkeypatch.setattr(fastembed, "find_spec", lambda name: True)
    monkeypatch.setattr(fastembed, "text_embedding", lambda: Described)


@pytest.mark.usefixtures("without_extra")
def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / SMALL.name, SMALL)
    for name in ("fastembed", f"fastembed:{SMALL.name}", "fastembed:nobody/knows"):
        with pytest.raises(MissingExtra, match=r"pip install 'dtrag\[fastembed\]'"):
            choose(_settings(tmp_path, name))
    with pytest.raises(MissingExtra):
        pull(SMALL.name, _settings(tmp_path), print, fastembed.try_out)


@pytest.mark.usefixtures("described_only")
def test_refused_models_come_with_advice(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=f"dtrag models pull {SMALL.name}"):
        choose(_settings(tmp_path))
    with pytest.raises(InvalidInput, match=r"fastembed has no model '\.\./\.\./etc'"):
        choose(_settings(tmp_path, "fastembed:../../etc"))
    with pytest.raises(InvalidInput, match=r"licensed cc-by-nc-4\.0, for non-commercial use only"):
        choose(_settings(tmp_path, "fastembed:jina/nc", embed_languages="*"))
    for languages in ("", "english", "ko;en"):
        with pytest.raises(InvalidInput, match="set DTRAG_EMBED_LANGUAGES"):
            choose(_settings(tmp_path, "fastembed:BAAI/bge-small-en-v1.5", embed_languages=languages))


@pytest.mark.usefixtures("described_only")
def test_properties_of_local_files_are_declared_before_the_model_is_loaded(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "models" / SMALL.name, SMALL)
    known = choose(_settings(tmp_path))
    assert isinstance(known, Embedder)
    assert known.id == f"fastembed-paraphrase-multilingual-minilm-l12-v2@{sha256_of(folder / SMALL.weights)[:8]}"
    assert (known.dim, known.max_tokens) == (SMALL.dim, CONTEXT)
    assert {"ko", "en", "ja"} <= known.languages
    other = replace(SMALL, name="BAAI/bge-small-en-v1.5", weights="model.onnx")
    write_model(tmp_path / "models" / other.name, other)
    named = choose(_settings(tmp_path, f"fastembed:{other.name}", embed_languages="en, KO"))
    assert named is not None
    assert named.languages == {"en", "ko"}


@pytest.mark.usefixtures("without_extra")
def test_doctor_says_what_the_embedder_needs(tmp_path: Path) -> None:
    found = {check.name: check for check in checks._models(_settings(tmp_path))}
    assert found["embedder"].state == "fail"
    assert "dtrag[fastembed]" in found["embedder"].detail


def test_only_licences_that_allow_any_use_are_offered() -> None:
    assert {model.licence for model in PUBLISHED} <= {"Apache-2.0", "MIT"}
    assert all(model.languages for model in PUBLISHED)


def test_the_list_shows_complete_local_models(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    assert {info.state for info in list_models(settings)} == {"absent"}
    folder = write_model(tmp_path / "models" / SMALL.name, SMALL)
    assert list_models(settings)[0].state == "unpinned"
    (folder / SUMS).write_text(f"{sha256_of(folder / SMALL.weights)}  {SMALL.weights}\n")
    assert list_models(settings)[0].state == "verified"
    (folder / SMALL.weights).write_bytes(b"other")
    assert list_models(settings)[0].state == "damaged"


@pytest.fixture
def embedder(tmp_path: Path) -> Embedder:
    write_model(tmp_path / "models" / SMALL.name, SMALL)
    chosen = choose(_settings(tmp_path))
    assert chosen is not None
    return chosen


@real
class TestFastembed(SemanticEmbedderContract):
    """The whole contract, with the real fastembed on a small model."""


@real
def test_prefixes_are_put_before_questions_and_documents(tmp_path: Path) -> None:
    model = next(model for model in PUBLISHED if model.query_prefix)
    write_model(tmp_path / "models" / model.name, model)
    chosen = choose(_settings(tmp_path, f"fastembed:{model.name}"))
    assert chosen is not None
    assert (chosen.embed_queries(["pump"]) != chosen.embed_documents(["closes pump"])).any()


@real
def test_an_invalid_file_is_a_damaged_model(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / SMALL.name, SMALL, weights=b"no graph")
    chosen = choose(_settings(tmp_path))
    assert chosen is not None
    with pytest.raises(ModelDamaged, match="dtrag models pull"):
        chosen.embed_queries(["pump"])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with open_hub() as hub:
        yield hub


@real
def test_a_model_is_pulled_tried_out_and_verified(tmp_path: Path, hub: Hub) -> None:
    source = write_model(tmp_path / "source", SMALL)
    hub.files |= {f"{SMALL.repository}/{name}": (source / name).read_bytes() for name in SMALL.files}
    folder = pull(SMALL.name, _settings(tmp_path), lambda line: None, fastembed.try_out, endpoint=hub.url)
    assert list_models(_settings(tmp_path))[0].state == "verified"
    assert choose(_settings(tmp_path)) is not None
    (folder / "tokenizer.json").write_text("{}")
    chosen = choose(_settings(tmp_path))
    assert chosen is not None
    with pytest.raises(ModelDamaged, match=r"tokenizer\.json"):
        chosen.embed_queries(["pump"])


@real
def test_it_opens_no_socket(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / SMALL.name, SMALL)
    program = f"""
import sys
from pathlib import Path
sockets, outward = [], ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, args: sockets.append(args) if event in outward else None)
from dtrag.adapters.embedders.factory import choose
from dtrag.settings import Settings
model = choose(Settings(data_dir=Path({str(tmp_path)!r}), embedder="fastembed"))
print(model.embed_queries(["library"]).shape, sockets)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.stdout == "(1, 384) []\n", done.stderr
