"""e5: the contract, the tokenizer and the vectors against references, damaged and missing files."""

from __future__ import annotations

import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from dtrag.adapters.embedders import bert
from dtrag.adapters.embedders.e5 import E5, E5File
from dtrag.adapters.embedders.models import E5_SMALL, locate
from dtrag.core.documents import Vector
from dtrag.errors import ModelDamaged, ModelNotFound
from dtrag.ports import Embedder
from dtrag.settings import Settings
from tests.contract.embedder import ODD, TEXTS, SemanticEmbedderContract
from tests.unit.adapters.embedders.bert_reference import sentence_vector

(WEIGHTS,) = (file.name for file in E5_SMALL.files)
KOREAN = (
    "휴학은 통산 네 학기를 초과할 수 없다. 다만, 군 복무를 위한 휴학 기간은 이에 산입하지 아니한다.",
    "도서관은 오전 9시에 열고 오후 10시에 닫는다.",
    "등록금은 분할하여 낼 수 있으며, 환불은 신청일부터 10일 이내에 한다(제12조의2 제1항).",
)
MANY = (
    *TEXTS,
    *KOREAN,
    "La bibliothèque ouvre à neuf heures; 図書館は九時に開きます。图书馆九点开门。",
    "Öffnungszeiten: 9–18 Uhr — Straße №5 ½ ﬁnal １２３ ㈜한국 ①② Ⅷ",
    'https://example.org/a_b?c=d&e=%20 text-embedding-3-small f(x) = x² + 3·x {"key": [1, 2.5e-3]}',
    "مكتبة عربية и русский текст, ελληνικά, עברית, हिन्दी, ไทย 👩‍🔬 z͑a͗l͝go",
)
FEW = (TEXTS[1], KOREAN[1], MANY[-2])
"""The reference in float32 takes a second for each."""

pytestmark = pytest.mark.skipif(
    not E5.available(Settings(data_dir=Path("nowhere"))), reason="the weights of e5 are not installed"
)


@pytest.fixture(scope="module")
def installed() -> Path:
    folder = locate(E5_SMALL, Settings(data_dir=Path("nowhere")))
    assert folder is not None
    return folder


@pytest.fixture(scope="module")
def file(installed: Path) -> E5File:
    return E5File(installed / WEIGHTS)


@pytest.fixture(scope="module", params=[1, 2], ids="{} threads".format)
def embedder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return E5.create(Settings(data_dir=tmp_path_factory.mktemp("data"), embed_threads=request.param))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", model_dir=tmp_path / "models", embed_threads=1)


@pytest.fixture
def copy(settings: Settings, installed: Path) -> Path:
    """The weights in the model folder, to be damaged."""
    assert settings.model_dir is not None
    folder = settings.model_dir / "e5"
    folder.mkdir(parents=True)
    return Path(shutil.copy(installed / WEIGHTS, folder))


class TestE5(SemanticEmbedderContract):
    """The whole contract, with one thread and with two."""


def test_it_declares_its_name_and_that_it_only_proposes() -> None:
    assert E5.id == "e5-small-int8@1571fc98"
    assert (E5.dim, E5.max_tokens, E5.languages) == (384, 256, frozenset({"*"}))
    assert (E5.floor, E5.decides) == (0.75, False)


def test_the_tokenizer_agrees_with_the_library(file: E5File) -> None:
    """With the vocabulary of the file, in another implementation. SentencePiece's rules are NFKC for these texts."""
    blob, offsets = file._pieces.tobytes(), file._offsets.tolist()
    pieces = [blob[start:end].decode() for start, end in pairwise(offsets)]
    library = Tokenizer(models.Unigram(list(zip(pieces, map(float, file._scores), strict=True)), file.unknown))
    library.normalizer = normalizers.NFKC()
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    tokenizer = file.tokenizer()
    for text in MANY:
        assert tokenizer.encode(text, 1_000) == library.encode(text, add_special_tokens=False).ids, text


def test_int8_stays_close_to_float32(settings: Settings, file: E5File) -> None:
    embedder, tokenizer, tensor = E5.create(settings), file.tokenizer(), cache(file.tensor)

    def reference(text: str) -> Vector:
        ids = [file.begin, *tokenizer.encode(text, 254), file.end]
        return sentence_vector(file.words(ids), tensor, layers=12)

    passages = np.stack([reference(f"passage: {text}") for text in FEW])
    assert (embedder.embed_documents(FEW) * passages).sum(axis=1).min() > 0.998
    questions = np.stack([reference(f"query: {text}") for text in FEW])
    assert (embedder.embed_queries(FEW) * questions).sum(axis=1).min() > 0.998


def test_a_korean_question_is_nearest_to_the_passage_that_answers_it(embedder: Embedder) -> None:
    questions = embedder.embed_queries(
        ["학교 몇 번까지 쉴 수 있어요?", "how late is the library open?", "등록금을 나누어 낼 수 있나요?"]
    )
    assert (questions @ embedder.embed_documents(KOREAN).T).argmax(axis=1).tolist() == [0, 1, 2]


def test_a_vector_does_not_depend_on_the_other_texts_of_its_batch(embedder: Embedder) -> None:
    crowd = embedder.embed_documents([*TEXTS, *ODD.values()])
    np.testing.assert_array_equal(crowd[: len(TEXTS)], np.concatenate([embedder.embed_documents([t]) for t in TEXTS]))


def test_the_model_folder_comes_before_the_package(settings: Settings, copy: Path) -> None:
    assert locate(E5_SMALL, settings) == copy.parent
    assert E5.create(settings).embed_queries(["주전자"]).shape == (1, 384)


@pytest.mark.parametrize("size", [0, 100, 5_000_000, 71_622_399])
def test_a_truncated_file_is_never_used(settings: Settings, copy: Path, size: int) -> None:
    with copy.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(ModelDamaged, match=r"e5-small-q4\.bin.*dtrag models pull e5"):
        E5.create(settings)


def test_one_changed_byte_is_noticed(settings: Settings, copy: Path) -> None:
    with copy.open("r+b") as file:
        file.seek(60_000_000)
        byte = file.read(1)[0]
        file.seek(60_000_000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(ModelDamaged, match=WEIGHTS):
        E5.create(settings)


@pytest.mark.parametrize("content", [b"x", bytes(10_000), b"E5S1" + b"\xff" * 10_000])
def test_weights_of_another_form_are_refused(
    settings: Settings, copy: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.write_bytes(content)
    monkeypatch.setattr(bert, "verify", lambda model, folder: None)
    with pytest.raises(ModelDamaged):
        E5.create(settings)


def test_a_missing_model_is_reported(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtrag.adapters.embedders.models.importlib.util.find_spec", lambda name: None)
    assert not E5.available(settings)
    with pytest.raises(ModelNotFound, match="dtrag models pull e5"):
        E5.create(settings)
