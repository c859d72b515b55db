"""Changes of many documents at once, all of them or none: checked against what a dry run has shown, and recorded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import scope_rows
from dtrag.core.document_changes import DocumentsEffect, ManyDocuments
from dtrag.core.statements import stated
from dtrag.errors import Advice, Conflict
from dtrag.ports import DocumentChangeStore, Recorder, unrecorded


class DocumentChanges:
    """Moves and deletes documents of one app."""

    def __init__(self, store: DocumentChangeStore, record: Recorder = unrecorded) -> None:
        self._store = store
        self._record = record

    async def preview(self, selection: ManyDocuments, *, caller: Caller = LOCAL) -> DocumentsEffect:
        """What `change` would do now. Raises `InvalidInput` for a category that the caller may not see."""
        effect = await self._store.preview(selection, caller.access, datetime.now(UTC))
        return replace(_seen(effect, caller), dry_run=True)

    async def change(
        self,
        selection: ManyDocuments,
        *,
        accept_widening: bool = False,
        accept_lowering: bool = False,
        state: str = "",
        caller: Caller = LOCAL,
    ) -> DocumentsEffect:
        """Change all documents that may be changed, in one transaction; the others are in the result with the reason.

        `state` is that of the preview that was looked at. Repeating a change that was made does nothing. Raises
        `Conflict`, and nothing is changed, when the documents are not in this state any more, when others would see
        more unless `accept_widening`, and when grades fall unless `accept_lowering`; `InvalidInput` as `preview`.
        """

        def allowed(effect: DocumentsEffect) -> None:
            seen = _seen(effect, caller)
            if state and seen.changed and seen.state != state:
                raise Conflict(_CHANGED)
            if seen.widened and not accept_widening:
                raise Conflict(_WIDENS, Advice.ACCEPT_EFFECT, option="--accept-widening", field="accept_widening")
            if seen.lowered and not accept_lowering:
                raise Conflict(_LOWERS, Advice.ACCEPT_EFFECT, option="--accept-lowering", field="accept_lowering")

        effect = await self._store.change(selection, caller.access, allowed, by=caller.name, now=datetime.now(UTC))
        if effect.changed:
            details: dict[str, object] = {"documents": effect.documents, "refused": len(effect.refused)}
            if selection.category is not None:
                details["path"] = list(selection.category.names)
            await self._record(
                caller.name,
                f"documents.{effect.action}",
                scope=scope_rows(caller.access),
                subjects=[str(document.document_id) for document in effect.changed],
                decision="done",
                details=details,
            )
        return _seen(effect, caller)


_CHANGED = stated(
    "documents_changed",
    "The documents have changed since the dry run: nothing was done. Make the dry run again, and look at its result.",
)
_WIDENS = stated("move_widens", "Documents would become visible to others: nothing was moved.")
_LOWERS = stated("move_lowers", "Documents would get a lower grade: nothing was moved.")


def _seen(effect: DocumentsEffect, caller: Caller) -> DocumentsEffect:
    whole_tree = not caller.access.grants
    return effect.for_caller(whole_tree=whole_tree, names_keys=whole_tree and caller.may("admin"))
