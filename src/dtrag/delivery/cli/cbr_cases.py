"""`dtrag cbr` for cases: suggest, add, show, list, set, delete, feedback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dtrag.core.response import plain
from dtrag.delivery.cli.console import Facts, Rows, note, plural, show_result
from dtrag.delivery.cli.context import Json, question_of, with_app
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.core.cases.case import Case

CaseId = Annotated[str, typer.Argument(metavar="ID", help="The id from the list.", show_default=False)]
Query = Annotated[list[str], typer.Argument(metavar="QUESTION", help="The question; - reads standard input.")]
Category = Annotated[
    str | None, typer.Option(metavar="PATH", help='The category, such as "HR/Leave".', show_default=False)
]
Content = Annotated[str | None, typer.Option(metavar="TEXT", help="What is shown with the case.", show_default=False)]
Quality = Annotated[
    float | None, typer.Option(metavar="NUMBER", min=0, max=1, help="Its quality, from 0 to 1.", show_default=False)
]
Passages = Annotated[
    list[str] | None,
    typer.Option("--passage", metavar="CHUNK_ID", help="A passage that it cites; may be repeated.", show_default=False),
]
Metadata = Annotated[str | None, typer.Option(metavar="JSON", help="Metadata, as a JSON object.", show_default=False)]
Status = Annotated[
    Literal["active", "archived"] | None, typer.Option(help="An archived case is never suggested.", show_default=False)
]


def suggest(
    context: typer.Context,
    query: Query,
    *,
    category: Category = None,
    subcategories: Annotated[bool, typer.Option("--subcategories", help="The branch below --category, too.")] = False,
    k: Annotated[int, typer.Option("-k", min=1, max=50, help="Maximum number of cases.")] = 5,
    similarity: Annotated[
        Literal["cosine", "euclidean", "jaccard", "semantic"], typer.Option(help="How questions are compared.")
    ] = "semantic",
    min_quality: Annotated[float, typer.Option(min=0, max=1, help="Leave out cases of a lower quality.")] = 0.0,
    as_json: Json = False,
) -> int:
    """Show the cases whose questions are most similar, best first."""
    from dtrag.core.cases.case import SimilarityMethod

    text = question_of(query)
    suggested = with_app(
        context,
        lambda opened: opened.cases.suggest(
            text,
            category,
            k,
            method=SimilarityMethod(similarity),
            min_quality=min_quality,
            prefix=subcategories,
        ),
    )
    from dtrag.cases.views import CaseView

    value = {
        "query": text,
        "suggestions": [{**plain(CaseView.of(case)), "similarity_score": score} for case, score in suggested.cases],
        "similarity_method": suggested.method.value,
        "execution_time_ms": suggested.milliseconds,
        "log_id": suggested.log_id,
        "notes": list(map(str, suggested.notes)),
    }
    rows = [
        (f"{score:.2f}", case.query, "/".join(case.category_path), f"{case.quality_score:.2f}", case.case_id)
        for case, score in suggested.cases
    ]
    votable = suggested.cases and suggested.log_id is not None
    return show_result(
        as_json,
        value,
        Rows(("Same", "Question", "Category", "Quality", "Id"), rows, whole=("Same", "Quality")),
        notes=[
            "" if suggested.cases else "There is no case to suggest.",
            *map(str, suggested.notes),
            f"To vote: dtrag cbr feedback {suggested.log_id} ID thumbs_up" if votable else "",
        ],
    )


def add(
    context: typer.Context,
    query: Query,
    *,
    category: Annotated[
        str, typer.Option(metavar="PATH", help='Its category, such as "HR/Leave".', show_default=False)
    ],
    content: Annotated[str, typer.Option(metavar="TEXT", help="What is shown with the case.", show_default=False)],
    quality: Quality = None,
    passage: Passages = None,
    metadata: Metadata = None,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="The day of the question, such as 2024-03-01.", show_default="today"),
    ] = None,
    case_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Its id.", show_default="a new one")] = None,
    as_json: Json = False,
) -> int:
    """Add a case. With passages it can be reused, once votes or later answers confirm it."""
    from dtrag.core.cases.case import DEFAULT_QUALITY

    text, values = question_of(query), _metadata(metadata)
    case = with_app(
        context,
        lambda opened: opened.cases.add(
            text,
            category,
            content,
            quality_score=DEFAULT_QUALITY if quality is None else quality,
            metadata=values,
            case_id=case_id,
            passages=passage or (),
            as_of=as_of,
        ),
    )
    from dtrag.cases.views import notes_on

    for each in notes_on(case):
        note(str(each))
    return _show_change("Added", case, as_json)


def show(context: typer.Context, case_id: CaseId, as_json: Json = False) -> int:
    """Show one case, archived or not."""
    case = with_app(context, lambda opened: opened.cases.get(case_id))
    from dtrag.cases.views import CaseView

    rows = [
        ("Id", case.case_id),
        ("Question", case.query or "(stored without text)"),
        ("Category", "/".join(case.category_path)),
        ("Content", case.content),
        ("Quality", f"{case.quality_score:.2f}"),
        ("Votes", f"{case.upvotes:,} up, {case.downvotes:,} down, {case.usage_count:,} in all"),
        ("Success", f"{case.success_rate:.0%}"),
        ("Origin", case.origin),
        ("Status", case.status),
        *(("Passages" if not number else "", cited.chunk_id) for number, cited in enumerate(case.passages)),
        *((("Day", case.as_of.isoformat()),) if case.as_of else ()),
        ("Created", case.created_at.isoformat()),
        ("Changed", case.updated_at.isoformat()),
    ]
    return show_result(as_json, CaseView.of(case), Facts(rows))


def list_cases(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of entries.")] = 100,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Continue after this id.", show_default=False)] = None,
    status: Status = None,
    stale: Annotated[
        bool | None,
        typer.Option("--stale/--fresh", help="Only cases with changed or missing passages, or only the others."),
    ] = None,
    as_json: Json = False,
) -> int:
    """List the cases by id."""
    page = with_app(context, lambda opened: opened.cases.page(limit, after, status=status, stale=stale))
    from dtrag.cases.views import listed_case

    rows = [
        (
            row.case.case_id,
            row.case.query or "(without text)",
            f"{row.case.quality_score:.2f}",
            row.case.usage_count,
            "stale" if row.stale else row.case.status,
        )
        for row in page.cases
    ]
    count = plural(len(page.cases), "case") if page.cases or page.next else "There are no such cases."
    more = "" if page.next is None else f"More: dtrag cbr list --after {page.next}"
    return show_result(
        as_json,
        {"cases": list(map(listed_case, page.cases)), "limit": limit, "next": page.next},
        Rows(("Id", "Question", "Quality", "Votes", "State"), rows, whole=("Quality", "Votes", "State")),
        notes=[count, more],
    )


def set_case(
    context: typer.Context,
    case_id: CaseId,
    *,
    query: Annotated[str | None, typer.Option(metavar="QUESTION", help="The new question.", show_default=False)] = None,
    category: Category = None,
    content: Content = None,
    quality: Quality = None,
    passage: Passages = None,
    metadata: Metadata = None,
    status: Status = None,
    as_json: Json = False,
) -> int:
    """Change a case; what is not given stays."""
    values: dict[str, Any] = {
        "query": query,
        "category_path": category,
        "content": content,
        "quality_score": quality,
        "passages": passage or None,
        "metadata": None if metadata is None else _metadata(metadata),
        "status": status,
    }
    _, case = with_app(context, lambda opened: opened.cases.change(case_id, **values))
    return _show_change("Changed", case, as_json)


def delete(context: typer.Context, case_id: CaseId, as_json: Json = False) -> int:
    """Delete a case with its votes and the interactions that name only it."""
    with_app(context, lambda opened: opened.cases.delete(case_id))
    return show_result(as_json, {"deleted": case_id}, f"Deleted {case_id}")


def feedback(
    context: typer.Context,
    log_id: Annotated[str, typer.Argument(metavar="LOG_ID", help="The log id of the suggestion.", show_default=False)],
    case_id: CaseId,
    vote: Annotated[
        Literal["thumbs_up", "thumbs_down", "selected", "ignored"],
        typer.Argument(metavar="VOTE", help="thumbs_up, thumbs_down, selected or ignored.", show_default=False),
    ],
    *,
    failed: Annotated[bool, typer.Option("--failed", help="The case did not help.")] = False,
    as_json: Json = False,
) -> int:
    """Vote on a case that `dtrag cbr suggest` showed; another vote replaces the first."""
    from dtrag.core.cases.case import FeedbackType

    case = with_app(
        context,
        lambda opened: opened.cases.feedback(log_id, case_id, FeedbackType(vote), success=False if failed else None),
    )

    value = {
        "log_id": log_id,
        "case_id": case.case_id,
        "feedback": vote,
        "quality_score": case.quality_score,
        "usage_count": case.usage_count,
        "success_rate": case.success_rate,
    }
    voted = f"{case.case_id}: quality {case.quality_score:.2f}, {plural(case.usage_count, 'vote')}"
    return show_result(as_json, value, voted)


def _metadata(text: str | None) -> dict[str, Any]:
    import json

    if text is None:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput('--metadata is not JSON. Give an object, such as \'{"source": "help desk"}\'.') from error
    if not isinstance(value, dict):
        raise InvalidInput('--metadata is not a JSON object, such as \'{"source": "help desk"}\'.')
    return value


def _show_change(word: str, case: Case, as_json: bool) -> int:
    from dtrag.cases.views import CaseView

    return show_result(as_json, CaseView.of(case), f"{word} {case.case_id}")
