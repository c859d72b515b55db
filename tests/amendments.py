"""Invented regulations with a history of amendments, and which text of each article is valid on which day."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

FIRST_DAY = date(2021, 3, 1)
SUBJECTS = (
    "차량",
    "도서",
    "시설",
    "장비",
    "기숙사",
    "연구비",
    "장학금",
    "출장",
    "보안",
    "안전",
    "회의",
    "기록물",
    "체육관",
)
PLACES = ("북관", "남관", "동관", "서관", "본관", "별관", "신관", "구관")
TITLES = ("목적", "적용범위", "신청", "승인", "기간", "수수료", "반납", "제한", "관리책임", "벌칙")


@dataclass(slots=True)
class Text:
    """The text of an article in one version; `marker` is in no other text."""

    marker: str
    amended: date | None = None


@dataclass(slots=True)
class Amendment:
    """An edition: its date, its articles by number (those deleted are missing), and dates of single articles."""

    day: date
    articles: dict[int, Text]
    later: dict[int, date] = field(default_factory=dict)
    transitional: int | None = None
    repeals: str = ""


@dataclass(slots=True)
class History:
    """One regulation with all its editions, oldest first; `repealed_on` by another regulation."""

    name: str
    editions: list[Amendment]
    repealed_on: date | None = None

    def valid(self, number: int, day: date) -> str | None:
        """The marker of the article's text that is valid on the day: written down event by event."""
        if self.repealed_on is not None and day >= self.repealed_on:
            return None
        marker: str | None = None
        before: dict[int, Text] = {}
        pending: list[tuple[date, int, str | None]] = []
        for edition in self.editions:
            for changed in sorted({*before, *edition.articles}):
                old, new = before.get(changed), edition.articles.get(changed)
                if old is None or new is None or old.marker != new.marker:
                    start = edition.later.get(changed, edition.day)
                    # A new amendment takes the place of one that has not taken effect yet.
                    pending = [event for event in pending if event[1] != changed or event[0] < start]
                    pending.append((start, changed, new.marker if new else None))
            before = edition.articles
        for start, changed, text in sorted(pending, key=lambda event: event[0]):
            if changed == number and start <= day:
                marker = text
        return marker

    def markers(self, number: int) -> list[str]:
        """All texts that the article has ever had."""
        texts = (edition.articles[number].marker for edition in self.editions if number in edition.articles)
        return list(dict.fromkeys(texts))

    def numbers(self) -> list[int]:
        """All articles that there have ever been."""
        return sorted({number for edition in self.editions for number in edition.articles})

    def days(self) -> list[date]:
        """Days around every change."""
        changes = {edition.day for edition in self.editions}
        changes |= {day for edition in self.editions for day in edition.later.values()}
        changes |= {self.repealed_on} if self.repealed_on else set()
        return sorted({day + timedelta(days=shift) for day in changes for shift in (-1, 0, 1)})

    def book(self, edition: Amendment) -> str:
        """The text of an edition, with the addenda of all editions up to it."""
        lines = [f"# {self.name}", ""]
        for number, text in sorted(edition.articles.items()):
            mark = f" <개정 {_dotted(text.amended)}>" if text.amended else ""
            lines += [f"## 제{number}조({TITLES[(number - 1) % len(TITLES)]})", ""]
            lines += [f"{self.name}의 사항은 {text.marker} 기준에 따라 처리하고 담당 부서에 알린다.{mark}", ""]
        for earlier in self.editions[: self.editions.index(edition) + 1]:
            lines += [f"## 부칙 <{_dotted(earlier.day)}>", "", _addendum(earlier), ""]
        return "\n".join(lines)


def _dotted(day: date | None) -> str:
    return f"{day.year}. {day.month}. {day.day}." if day else ""


def _korean(day: date) -> str:
    return f"{day.year}년 {day.month}월 {day.day}일"


def _addendum(edition: Amendment) -> str:
    by_day: dict[date, list[int]] = {}
    for number, day in sorted(edition.later.items()):
        by_day.setdefault(day, []).append(number)
    later = [
        f"다만, {' 및 '.join(f'제{number}조' for number in numbers)}의 개정규정은 {_korean(day)}부터 시행한다."
        for day, numbers in sorted(by_day.items())
    ]
    lines = [" ".join([f"제1조(시행일) 이 규정은 {_korean(edition.day)}부터 시행한다.", *later])]
    if edition.transitional is not None:
        article = f"제{edition.transitional}조"
        lines.append(f"제2조(경과조치) 이 규정 시행 당시 종전의 {article}에 따라 신청한 사람은 종전의 규정에 따른다.")
    if edition.repeals:
        lines.append(f"제3조(다른 규정의 폐지) 「{edition.repeals}」은 이 규정 시행과 동시에 폐지한다.")
    return "\n\n".join(lines)


def histories(seed: int, works: int, editions: int = 4) -> list[History]:
    """So many regulations, each with so many editions (its enactment, and amendments)."""
    chosen = random.Random(seed)
    made = [_history(chosen, place, editions) for place in range(works)]
    for repealing, repealed in zip(made[::5], made[1::5], strict=False):
        last = repealing.editions[-1]
        last.repeals, repealed.repealed_on = repealed.name, last.day
        repealed.editions = [edition for edition in repealed.editions if edition.day < last.day]
    return [history for history in made if history.editions]


def _history(chosen: random.Random, place: int, editions: int) -> History:
    name = f"{PLACES[place % 8]}{SUBJECTS[place // 8 % 13]}운영{'' if place < 104 else place}규정"
    history = History(name, [])
    day = FIRST_DAY + timedelta(days=chosen.randrange(200))
    articles = {number: Text(f"기준{place}판{number}번0") for number in range(1, chosen.randint(5, 9))}
    for version in range(editions):
        history.editions.append(_edition(chosen, day, dict(articles), version, place))
        articles = history.editions[-1].articles
        day += timedelta(days=chosen.randint(200, 1000))
    return history


def _edition(chosen: random.Random, day: date, articles: dict[int, Text], version: int, place: int) -> Amendment:
    if version == 0:
        return Amendment(day, articles)
    edition = Amendment(day, articles)
    for number in sorted(articles):
        fate = chosen.random()
        if fate < 0.45 or number <= 2:  # two articles at least stay, or a text is no regulation any more
            continue
        if fate < 0.6 and len(articles) > 4:
            del articles[number]
        else:
            articles[number] = Text(f"기준{place}판{number}번{version}", day)
        if chosen.random() < 0.35:
            edition.later[number] = day + timedelta(days=chosen.choice((31, 180, 400)))
    if chosen.random() < 0.3:
        added = max(articles) + 1
        articles[added] = Text(f"기준{place}판{added}번{version}", day)
    if chosen.random() < 0.4:
        edition.transitional = 3
    return edition


def write_books(made: list[History], folder: Path) -> Iterator[Path]:
    """One file an edition, in the order of their dates."""
    dated = sorted(
        ((edition.day, place, edition) for place, history in enumerate(made) for edition in history.editions),
        key=lambda each: each[:2],
    )
    for day, place, edition in dated:
        path = folder / f"{place:03}-{day}.md"
        path.write_text(made[place].book(edition), "utf-8")
        yield path
