"""Makes a collection of small invented documents (PDF, Markdown, text) with topic labels and judged questions.

    .venv/bin/python scripts/make_mixed_fixture.py FOLDER [--documents 1000] [--seed 7]

A topic is a subject (such as parental leave) with an aspect (such as who approves it). The documents of a subject share
its words, those of an aspect share others, each document words things in its own way and mentions another topic by the
way, so that single words do not tell topics apart. Each document also has a fact of its own: who answers questions, and
the extension. `topics.json` in the folder has the topic of each file, a question for each topic, and for each file the
question about its fact with the answer. The same arguments give the same files, byte for byte.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass
from pathlib import Path

from sample_markup import Heading, Paragraph
from sample_pdf import render_pdf

DOCUMENTS = 1_000
SEED = 7
KINDS = ("md", "txt", "pdf")
SUBJECTS = {
    "parental leave": "time away with a newborn child",
    "sick leave": "absence through illness",
    "travel expenses": "costs of journeys for work",
    "company cars": "vehicles of the fleet",
    "remote work": "working from home",
    "overtime pay": "money for extra hours",
    "laboratory keys": "entry to the laboratories",
    "library loans": "borrowed books",
    "research grants": "funds for studies",
    "student housing": "rooms in the residences",
    "tuition refunds": "fees that are paid back",
    "exam resits": "tests taken a second time",
    "visitor badges": "passes for guests",
    "waste disposal": "removal of refuse",
    "chemical storage": "keeping of solvents and acids",
    "fire drills": "practice of leaving the building",
    "software licences": "rights to run programs",
    "email accounts": "mailboxes of the staff",
    "data backups": "copies of files",
    "password resets": "new credentials",
    "purchase orders": "buying of goods",
    "supplier contracts": "agreements with vendors",
    "meeting rooms": "places for gatherings",
    "catering services": "food for events",
    "bicycle parking": "stands for cycles",
}
ASPECTS = {
    "eligibility": (
        "who is eligible for {s}",
        (
            "Eligible for {s} are {who} with at least {n} months of service.",
            "{s} may be claimed by {who}; others are not eligible.",
            "Whoever has worked here for {n} months is eligible for {s}, {who} included.",
            "Entitled to {s}: {who}. Eligibility begins after {n} months.",
        ),
    ),
    "application": (
        "how to apply for {s}",
        (
            "To apply for {s}, send form {code} to {office}.",
            "An application for {s} is filed with {office} on form {code}.",
            "Apply for {s} at {office}; the application form is {code}.",
            "Applications for {s} use form {code}, which {office} hands out.",
        ),
    ),
    "deadline": (
        "what is the deadline for {s}",
        (
            "The deadline for {s} is {n} days before the date concerned.",
            "Requests about {s} that come after the deadline of {n} days are refused.",
            "For {s} a deadline of {n} days holds, counted from the first of {month}.",
            "The last day for {s} falls {n} days after {month} begins; that deadline is never extended.",
        ),
    ),
    "approval": (
        "who approves {s}",
        (
            "{s} is approved by {office} in writing.",
            "The approval of {s} lies with {office}, with {who} heard first.",
            "Before {s} is granted, {office} approves it within {n} days.",
            "{office} gives or refuses approval of {s}; the reasons are stated.",
        ),
    ),
    "records": (
        "how long are records of {s} kept",
        (
            "Records of {s} are kept for {n} months and then destroyed.",
            "{office} keeps the records of {s} for {n} months.",
            "Each record of {s} is archived by {office} until {month}, {n} months at most.",
            "Records about {s} stay with {office}; after {n} months they are erased.",
        ),
    ),
}
WHO = ("permanent staff", "part-time employees", "doctoral candidates", "trainees", "guest scientists", "team leaders")
OFFICES = (
    "the personnel office",
    "the dean",
    "the head of department",
    "the service desk",
    "the finance unit",
    "the registrar",
    "the safety officer",
    "the facilities team",
)
MONTHS = ("January", "March", "April", "June", "August", "September", "November")
FILLERS = (
    "This applies to all sites, including {who} in {place}.",
    "Questions are answered by {office} on weekdays.",
    "In {place} the local agreement of {month} remains valid.",
    "Exceptions are noted by {office} and reviewed every {month}.",
    "In short, it concerns {gloss}.",
    "{who} receive a copy of this notice in {month}.",
)
MENTIONS = (
    "For {other} a separate notice exists.",
    "This does not concern {other}.",
    "Compare the notice about {other}.",
    "Earlier notices treated this together with {other}.",
)
FIRST_NAMES = tuple(
    "Ada Bram Cleo Dorit Egon Fenna Gustav Hedda Ilse Jorun Kasimir Leonie Mats Nuria Otto Petra Quentin Ragna Silas "
    "Tilda Ulf Vera Wanda Xaver Yrsa Zeno Alma Bodil Carsten Dagny".split()
)
LAST_NAMES = tuple(
    "Abendroth Brockhurst Castellan Dunmore Eversholt Falkenrath Grimshaw Hollander Ingelow Jessop Kettering Lindqvist "
    "Marchbank Norrington Oakhurst Pemberton Quistgaard Ravensdale Sedgewick Thistlewood Umfreville Vandermeer "
    "Whitlock Yardley Zellweger Ashdown Birkenhead Copperfield Driscoll Ellsworth Fairbairn Glossop Harkness "
    "Inverarity".split()
)
PLACES = ("Tarrowby", "Umbershire", "Quillham", "Norbeck", "Estley", "Harrowmere")
TITLES = ("Notice {n}", "Circular {n}", "Instruction {n}", "Leaflet {n}", "Memo {n}")


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject with an aspect, and the question that its documents answer."""

    name: str
    subject: str
    aspect: str

    @property
    def question(self) -> str:
        """A question about the topic."""
        text = ASPECTS[self.aspect][0].format(s=self.subject)
        return f"{text[0].upper()}{text[1:]}?"


TOPICS = tuple(Topic(f"{s.replace(' ', '-')}/{aspect}", s, aspect) for s in SUBJECTS for aspect in ASPECTS)


@dataclass(frozen=True, slots=True)
class Fact:
    """Who answers questions about a document, and under which extension."""

    person: str
    extension: int

    @property
    def sentence(self) -> str:
        """The sentence of the document."""
        return f"{self.person} answers further questions under extension {self.extension}."

    @property
    def question(self) -> str:
        """What only this document answers."""
        return f"Under which extension does {self.person} answer questions?"


def facts(count: int, chance: random.Random) -> list[Fact]:
    """So many facts about different people, with different extensions. Raises `ValueError` for more than there are."""
    people = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    numbers = chance.sample(range(1000, 10_000), count)
    return [Fact(person, number) for person, number in zip(chance.sample(people, count), numbers, strict=True)]


def paragraphs_of(topic: Topic, fact: Fact, chance: random.Random) -> list[str]:
    """The text of one document of the topic."""

    def filled(template: str) -> str:
        text = template.format(
            s=topic.subject,
            gloss=SUBJECTS[topic.subject],
            other=chance.choice([subject for subject in SUBJECTS if subject != topic.subject]),
            who=chance.choice(WHO),
            office=chance.choice(OFFICES),
            place=chance.choice(PLACES),
            month=chance.choice(MONTHS),
            code=f"{chance.choice('ABCDEFG')}-{chance.randrange(10, 99)}",
            n=chance.randrange(2, 60),
        )
        return text[0].upper() + text[1:]

    statements = chance.sample(ASPECTS[topic.aspect][1], 2)
    fillers = chance.sample(FILLERS, 3)
    first = " ".join(map(filled, (statements[0], fillers[0])))
    second = " ".join(map(filled, (fillers[1], statements[1], chance.choice(MENTIONS), fillers[2])))
    return [first, f"{second} {fact.sentence}"]


def contents(kind: str, title: str, paragraphs: list[str]) -> bytes:
    """The file of a document."""
    if kind == "pdf":
        elements = [Heading(1, title), *map(Paragraph, paragraphs)]
        return render_pdf(elements, title=title, author="Invented", date="D:20240901000000Z")
    body = "\n\n".join(paragraphs) + "\n"
    return (f"# {title}\n\n{body}" if kind == "md" else f"{title}\n\n{body}").encode("ascii")


def make(folder: Path, documents: int = DOCUMENTS, seed: int = SEED) -> dict[str, str]:
    """Write the files and `topics.json`; returns the topic of each file name."""
    chance = random.Random(seed)
    labels: dict[str, str] = {}
    questions: dict[str, dict[str, str]] = {}
    people = facts(documents, chance)
    for number in range(documents):
        topic, kind = TOPICS[number % len(TOPICS)], KINDS[number // len(TOPICS) % len(KINDS)]
        title = chance.choice(TITLES).format(n=number + 1)
        name = f"document-{number + 1:04}.{kind}"
        (folder / name).write_bytes(contents(kind, title, paragraphs_of(topic, people[number], chance)))
        labels[name] = topic.name
        questions[name] = {"question": people[number].question, "answer": str(people[number].extension)}
    described = {"questions": {topic.name: topic.question for topic in TOPICS}, "topics": labels, "facts": questions}
    (folder / "topics.json").write_text(json.dumps(described, indent=1), "utf-8")
    return labels


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{len(make(arguments.folder, arguments.documents, arguments.seed))} documents in {arguments.folder}")
