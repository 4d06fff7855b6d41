"""The datasheet of a result: what only people know of it, as answers to questions that stay the same.

    return Outputs(docs=docs, datasheet=Datasheet(purpose="To train a small model of cooking.", maintainer="…"))

The questions are those of Gebru et al. (Datasheets for Datasets, Communications of the ACM 2021), in our words, without
those that the page answers itself from what was counted. One that nobody answers is printed as "not answered": an empty
place is a finding, too. Answers stand in the manifest of the result, so a changed one makes another result of the same
content. `facts` of publishing (name, version, address, citation) go into `croissant.json`.

Invariants: text only; nothing here reaches a document. Cost: nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from curate.configuration import ConfigurationError

MOST: Final = 10_000
"""Code points of an answer."""

MOST_GAPS: Final = 200
"""Known gaps."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its `section`, and the field of `Datasheet` that answers it."""

    section: str
    field: str
    text: str


QUESTIONS: Final[Sequence[Question]] = (
    Question("Motivation", "purpose", "What was it made for, and which gap should it fill?"),
    Question("Motivation", "creators", "Who made it, on behalf of whom?"),
    Question("Motivation", "funding", "Who paid for it?"),
    Question("Composition", "contents", "What is one document, and are there kinds of them?"),
    Question("Composition", "population", "What is it a sample of, and how was that sample drawn?"),
    Question("Composition", "confidential", "Could there be texts that were not meant for the public?"),
    Question("Composition", "people", "Is it about people, which groups of them, and could they be recognised?"),
    Question("Composition", "offensive", "Is there content that may hurt or frighten a reader?"),
    Question("Composition", "dependencies", "Does it depend on anything elsewhere that may change or vanish?"),
    Question("Collection", "collection", "How was it acquired, with what tools?"),
    Question("Collection", "collectors", "Who collected it, and how were they paid?"),
    Question("Collection", "timeframe", "When was it collected, and when was what it says written?"),
    Question("Collection", "consent", "Were those who wrote it told, did they agree, how can they withdraw?"),
    Question("Collection", "review", "Did anybody review its ethics or its effects on those concerned?"),
    Question("Preparation", "preparation", "What was done to it before this recipe read it?"),
    Question("Preparation", "raw", "Is the raw data kept, and where?"),
    Question("Uses", "uses", "What has it been used for?"),
    Question("Uses", "avoid", "What should it not be used for, and why?"),
    Question("Uses", "risks", "What in its making may harm in later use, and what can a user do about that?"),
    Question("Distribution", "distribution", "To whom is it given, how and when?"),
    Question("Distribution", "restrictions", "Do third parties or the law restrict its use or export?"),
    Question("Maintenance", "maintainer", "Who looks after it, and how can they be reached?"),
    Question("Maintenance", "updates", "Will it be corrected or extended, and how is that told?"),
    Question("Maintenance", "withdrawal", "How can somebody have texts removed, and what becomes of older versions?"),
    Question("Maintenance", "contributions", "How can others add to it?"),
)
"""In the order of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Datasheet:
    """What only people know of a result.

    Attributes:
        purpose … contributions: answers to `QUESTIONS`; "" is not answered.
        name, version, licence, url, citation, published: facts for `croissant.json`: a title, a version as "1.0.0", the
            licence of the collection (an SPDX id or an address), where it is published, how to cite it, and the day as
            "2026-03-01". `purpose` is its description, `creators` its creator.
        gaps: known gaps: what is missing, unchecked or wrong, a sentence each.

    Raises:
        ConfigurationError: an answer is no text or too long, or `published` is no day.
    """

    purpose: str = ""
    creators: str = ""
    funding: str = ""
    contents: str = ""
    population: str = ""
    confidential: str = ""
    people: str = ""
    offensive: str = ""
    dependencies: str = ""
    collection: str = ""
    collectors: str = ""
    timeframe: str = ""
    consent: str = ""
    review: str = ""
    preparation: str = ""
    raw: str = ""
    uses: str = ""
    avoid: str = ""
    risks: str = ""
    distribution: str = ""
    restrictions: str = ""
    maintainer: str = ""
    updates: str = ""
    withdrawal: str = ""
    contributions: str = ""
    name: str = ""
    version: str = ""
    licence: str = ""
    url: str = ""
    citation: str = ""
    published: str = ""
    gaps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        gaps: Any = self.gaps  # as recipes give it
        if isinstance(gaps, str) or len(gaps) > MOST_GAPS:
            raise ConfigurationError(f"Datasheet(gaps=…) takes up to {MOST_GAPS} sentences, as gaps=('…', '…')")
        object.__setattr__(self, "gaps", tuple(self.gaps))
        told = [(item.name, getattr(self, item.name)) for item in fields(self) if item.name != "gaps"]
        for name, text in [*told, *(("gaps", gap) for gap in self.gaps)]:
            if not isinstance(text, str) or len(text) > MOST:
                raise ConfigurationError(f"Datasheet({name}=…) takes text of up to {MOST:,} characters")
        if self.published and not _is_day(self.published):
            raise ConfigurationError(f"Datasheet(published={self.published!r}) takes a day, as '2026-03-01'")

    def to_json(self) -> dict[str, Any]:
        """Return what is answered, as a manifest has it."""
        told = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: list(value) if name == "gaps" else value for name, value in told.items() if value}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Datasheet:
        """Return the datasheet that a manifest has; answers to questions that are no longer asked are left out."""
        known = {item.name for item in fields(cls)}
        told: dict[str, Any] = {name: answer for name, answer in value.items() if name in known}
        return cls(**told)


def _is_day(text: str) -> bool:
    digits = text.replace("-", "", 2)
    return len(text) == 10 and text[4] == text[7] == "-" and len(digits) == 8 and digits.isascii() and digits.isdigit()
