"""The reranker that the settings name, loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dtrag.adapters.model_files import OnDemand, verify
from dtrag.adapters.pair_model import TOKENIZER, WEIGHTS, available
from dtrag.adapters.rerankers import fastembed
from dtrag.adapters.rerankers.cross_encoder import CrossEncoder
from dtrag.adapters.rerankers.models import PUBLISHED, locate, published
from dtrag.errors import DtragError, InvalidInput, ModelNotFound
from dtrag.ports import Reranker
from dtrag.settings import Settings

_ANY = frozenset({"*"})


def choose(settings: Settings) -> Reranker | None:
    """`auto`: the first known cross-encoder in the model folder, else None. A name or a folder: that one.

    Checks file names only; the model loads at its first use. Raises `InvalidInput` for an unknown name and a licence
    that forbids commercial use, `ModelNotFound` for a model that is not on this machine.
    """
    name = settings.reranker
    if name == "none":
        return None
    if name == "auto":
        here = (_local(model.name, settings) for model in PUBLISHED)
        return next((model for model in here if model is not None), None)
    folder = Path(name).expanduser()
    reranker: Reranker | None = None if folder.is_absolute() else _local(name, settings)
    if reranker is None and name and folder.is_dir():
        reranker = _in_folder(folder, settings)
    if reranker is None:
        reranker = _cached(name, settings)
    if reranker is None:
        raise _refusal(name)
    return reranker


def _in_folder(folder: Path, settings: Settings) -> RerankerOnDemand:
    if not available(folder):
        raise ModelNotFound(
            f"DTRAG_RERANKER is the folder {folder}, which has no {WEIGHTS} and {TOKENIZER}. Put both there, or name a "
            f"model: {', '.join(model.name for model in PUBLISHED)}."
        )
    name = folder.resolve().name
    return RerankerOnDemand(name, _ANY, lambda: CrossEncoder(folder, name=name, threads=settings.embed_threads))


def _local(name: str, settings: Settings) -> RerankerOnDemand | None:
    folder, known = locate(name, settings), published(name)
    if folder is None:
        return None
    languages = known.languages if known is not None else _ANY

    def load() -> Reranker:
        verify(name, folder)
        return CrossEncoder(folder, name=name, languages=languages, threads=settings.embed_threads)

    return RerankerOnDemand(name, languages, load)


def _cached(name: str, settings: Settings) -> Reranker | None:
    """A model in fastembed's cache, by our name or fastembed's. Loaded at once, which shows that it is usable."""
    if not fastembed.installed():
        return None
    known = published(name)
    theirs = known.repository if known is not None else name
    if not fastembed.supported(theirs):
        return None
    try:
        languages = known.languages if known is not None else _ANY
        return fastembed.FastembedReranker(theirs, languages=languages, threads=settings.embed_threads)
    except ModelNotFound as error:
        if known is not None:
            raise ModelNotFound(name=name) from error
        raise


def _refusal(name: str) -> DtragError:
    if published(name) is not None:
        return ModelNotFound(name=name)
    more = "" if fastembed.installed() else " Models in fastembed's cache need: pip install 'dtrag[fastembed]'."
    return InvalidInput(
        f"There is no reranker {name[:80]!r}. Known: auto, none, {', '.join(model.name for model in PUBLISHED)}, "
        f"or a folder that holds {WEIGHTS} and {TOKENIZER}.{more}"
    )


class RerankerOnDemand(OnDemand[Reranker]):
    """A reranker that loads at its first use."""

    def __init__(self, name: str, languages: frozenset[str], load: Callable[[], Reranker]) -> None:
        super().__init__(load)
        self.id = name
        self.languages = languages

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        """See `Reranker`."""
        return self.loaded().score(query, texts, deadline)
