"""The list of regulations: chosen by letters, sorted as in the book."""

from __future__ import annotations

from dtrag.core.provisions import RegulationSummary, listed


def test_a_list_is_chosen_by_letters_and_sorted_by_code() -> None:
    rows = [
        RegulationSummary(name, code, name, 1, 0, 0, ())
        for name, code in (("가 규정", "3-10-1"), ("나규정", ""), ("FUN 센터규정", "3-2-9"), ("학칙", "2-1-1"))
    ]

    def names(containing: str = "", *, by_code: bool = False) -> list[str]:
        return [row.name for row in listed(rows, containing, by_code=by_code)]

    assert names() == ["가 규정", "나규정", "FUN 센터규정", "학칙"]
    assert names(by_code=True) == ["학칙", "FUN 센터규정", "가 규정", "나규정"]
    assert (
        names("가규정") == ["가 규정"] and names("fun센터 규") == ["FUN 센터규정"] and names("3-2") == ["FUN 센터규정"]
    )
    assert names("없는") == []
