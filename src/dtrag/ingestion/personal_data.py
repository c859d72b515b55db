"""Marks or masks the personal data of documents before anything of them is analysed or stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dtrag.core.documents import Chunk, ChunkedDocument, Draft, Scalar
from dtrag.core.editions import folded_name
from dtrag.core.text.personal_data import PersonalDatum
from dtrag.core.text.personal_data_policy import FIELD, OFF, PersonalDataPolicy


@dataclass(frozen=True)
class _Reading:
    """The policy, and the values found in the text of a document with what is stored in place of each."""

    policy: PersonalDataPolicy
    values: re.Pattern[str] | None
    masks: Mapping[str, str]

    def short(self, text: str, context: str = "") -> str:
        """A title, heading or field masked by itself, and where it repeats a value of the text."""
        if not self.policy.masks:
            return text
        if self.values is not None:
            text = self.values.sub(lambda match: self.masks[match[0]], text)
        return self.policy.masked(self.policy.masked_name(text), context)

    def fields(self, metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The metadata, masked, without an earlier mark."""
        masked: dict[str, Scalar] = {}
        for key, value in metadata.items():
            if key != FIELD:
                masked[self.short(key)] = (
                    self.short(value, key) if isinstance(value, str) else self.policy.masked_value(value, key)
                )
        return masked


def applied(passages: ChunkedDocument, policy: PersonalDataPolicy, earlier: str = "") -> ChunkedDocument:
    """The document with the kinds of personal data in its metadata and in those of its passages; masked if so decided.

    Masks have the length of what they replace, so that the spans of passages stay exact. `earlier` is the policy that
    it was read with before: of a masked text only the kinds are known that were found then.
    """
    document = passages.document
    if policy.mode == "off":
        return passages if earlier.startswith("mask") else _unmarked(passages)
    data = policy.detector.find(document.text)
    text = policy.detector.replaced(document.text, data) if policy.masks else document.text
    masks = {document.text[datum.start : datum.end]: text[datum.start : datum.end] for datum in data}
    pattern = (
        re.compile("|".join(re.escape(value) for value in sorted(masks, key=len, reverse=True))) if masks else None
    )
    reading = _Reading(policy, pattern, masks)
    stays_masked = earlier.startswith("mask")
    chunks = tuple(_chunk(chunk, passages, text, data, reading, stays_masked=stays_masked) for chunk in passages.chunks)
    beside = [document.title, *(f"{key}: {value}" for key, value in document.metadata.items() if key != FIELD)]
    kinds = {datum.kind for part in beside for datum in policy.detector.find(part)} | {datum.kind for datum in data}
    edition = passages.edition
    if edition is not None and (name := folded_name(reading.short(edition.name))) != edition.name:
        edition = replace(edition, name=name)
    marked = replace(
        document,
        title=reading.short(document.title),
        text=text,
        category_path=document.category_path and tuple(map(reading.short, document.category_path)),
        metadata=_marked(reading.fields(document.metadata), kinds, document.metadata if stays_masked else {}),
    )
    return ChunkedDocument(marked, chunks, edition)


def reapplied(draft: Draft, policy: PersonalDataPolicy) -> Draft:
    """A stored document under another policy. What is masked stays masked: the values are not stored."""
    earlier = draft.personal_data
    still_masked = earlier.startswith("mask") and not policy.masks
    return replace(
        draft,
        passages=applied(draft.passages, policy, earlier),
        source_uri=policy.masked_address(draft.source_uri),
        source_path=policy.masked_address(draft.source_path),
        personal_data=earlier if still_masked else policy.id,
    )


def _chunk(
    chunk: Chunk,
    passages: ChunkedDocument,
    text: str,
    data: Sequence[PersonalDatum],
    reading: _Reading,
    *,
    stays_masked: bool,
) -> Chunk:
    original = passages.document.text[chunk.start : chunk.end]
    if original == chunk.text:
        masked = text[chunk.start : chunk.end]
        kinds = {datum.kind for datum in data if datum.start < chunk.end and chunk.start < datum.end}
    else:  # not a span of the text: a table whose header is repeated
        masked = reading.short(chunk.text)
        kinds = {datum.kind for datum in reading.policy.detector.find(chunk.text)}
    return replace(
        chunk,
        text=masked,
        breadcrumb=tuple(map(reading.short, chunk.breadcrumb)),
        metadata=_marked(reading.fields(chunk.metadata), kinds, chunk.metadata if stays_masked else {}),
    )


def _marked(metadata: dict[str, Scalar], kinds: set[str], earlier: Mapping[str, Any]) -> dict[str, Scalar]:
    known = {*kinds, *filter(None, str(earlier.get(FIELD) or "").split(","))}
    return metadata | {FIELD: ",".join(sorted(known))} if known else metadata


def _unmarked(passages: ChunkedDocument) -> ChunkedDocument:
    """The document without marks of an earlier policy; the same object where there are none."""
    if FIELD not in passages.document.metadata and not any(FIELD in chunk.metadata for chunk in passages.chunks):
        return passages
    reading = _Reading(OFF, None, {})
    chunks = tuple(replace(chunk, metadata=reading.fields(chunk.metadata)) for chunk in passages.chunks)
    document = replace(passages.document, metadata=reading.fields(passages.document.metadata))
    return replace(passages, document=document, chunks=chunks)
