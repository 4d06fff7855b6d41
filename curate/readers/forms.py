"""What a reader needs to know beside what all readers share: one frozen form for each format that needs any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from curate.configuration import ConfigurationError

REVISITS: Final = ("count", "resolve")


@dataclass(frozen=True, slots=True)
class WarcForm:
    """What of a web archive becomes documents.

    Attributes:
        statuses: HTTP status codes of responses; None takes any.
        revisits: "count" them, or "resolve" them by the record they refer to, where it stands earlier in the file.
    """

    statuses: tuple[int, ...] | None = (200,)
    revisits: str = "count"

    def __post_init__(self) -> None:
        if self.revisits not in REVISITS:
            raise ConfigurationError(f"revisits={self.revisits!r} is not one of {', '.join(REVISITS)}")


PAGES: Final = WarcForm()


@dataclass(frozen=True, slots=True)
class CsvForm:
    """The dialect of separated values.

    Attributes:
        delimiter: between fields, one ASCII character; None: a tab in .tsv and .tab files, else a comma.
        quote: around fields that hold delimiters, line breaks or quotes; None where nothing is quoted.
        escape: makes the character behind it plain; a doubled quote inside quotes is a quote with or without it.
        names: of the columns; None takes them from the first record of each file.
        encoding: of the file, as Python names it; a superset of ASCII.
    """

    delimiter: str | None = None
    quote: str | None = '"'
    escape: str | None = None
    names: tuple[str, ...] | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        given = [each for each in (self.delimiter, self.quote, self.escape) if each is not None]
        if any(len(each) != 1 or not each.isascii() or each in "\r\n" for each in given) or len(set(given)) < len(
            given
        ):
            raise ConfigurationError(f"{self}: delimiter, quote and escape are different single ASCII characters")
        try:
            ascii_kept = 'a,"\n'.encode(self.encoding) == b'a,"\n'
        except (LookupError, UnicodeEncodeError):
            ascii_kept = False
        if not ascii_kept:
            raise ConfigurationError(f"encoding={self.encoding!r}: give one that Python knows and that keeps ASCII")
        if self.names is not None and len(set(self.names)) < len(self.names):
            raise ConfigurationError(f"header={list(self.names)}: each name once")


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a text file is cut: at each `separator`, or not at all where it is None."""

    separator: str | None = None

    def __post_init__(self) -> None:
        if self.separator == "":
            raise ConfigurationError('separator="": give the text between two documents, as "\\n\\n\\n", or None')


@dataclass(frozen=True, slots=True)
class CodeForm:
    """How many leading parts of a path name the repository: 2 for owner/name; 0: there is none."""

    repository_parts: int = 1

    def __post_init__(self) -> None:
        if self.repository_parts < 0:
            raise ConfigurationError(f"repository_parts={self.repository_parts}: give 0 or more")


@dataclass(frozen=True, slots=True)
class HtmlForm:
    """The address of the folder of pages: the path below the root is put behind it; None where they have none."""

    url: str | None = None


@dataclass(frozen=True, slots=True)
class WatForm:
    """Which metadata become columns: pairs of our name and the path in the record's "Envelope", "/" between parts."""

    columns: tuple[tuple[str, str], ...] = (
        ("title", "Payload-Metadata/HTTP-Response-Metadata/HTML-Metadata/Head/Title"),
        ("metas", "Payload-Metadata/HTTP-Response-Metadata/HTML-Metadata/Head/Metas"),
        ("links", "Payload-Metadata/HTTP-Response-Metadata/HTML-Metadata/Links"),
    )


@dataclass(frozen=True, slots=True)
class WikiForm:
    """Which pages of a MediaWiki dump become documents: namespaces by number, and whether redirects do."""

    namespaces: tuple[int, ...] | None = (0,)
    redirects: str = "refuse"

    def __post_init__(self) -> None:
        if self.redirects not in ("refuse", "keep"):
            raise ConfigurationError(f'redirects={self.redirects!r} is not one of "refuse", "keep"')


@dataclass(frozen=True, slots=True)
class TarForm:
    """What is in tar archives: members whose name matches `members`, each read as `format` in the form `form`."""

    format: str
    members: str = "**/*"
    form: FileForm | None = None

    def __post_init__(self) -> None:
        if self.format not in TAR_FORMATS:
            raise ConfigurationError(f"format={self.format!r} is not one of {', '.join(TAR_FORMATS)}")


TAR_FORMATS: Final = ("text", "code", "html", "jsonl", "csv", "warc", "wet", "wat", "mediawiki", "epub", "pdf")

FileForm = WarcForm | CsvForm | TextForm | CodeForm | HtmlForm | WatForm | WikiForm
Form = FileForm | TarForm
