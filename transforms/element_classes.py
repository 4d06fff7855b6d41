"""The classes that lxml.html gives the elements of a page, found without a call of Python for each element.

Each element that Python touches gets an object, of the class that the parser's lookup names. That of lxml.html is
written in Python and took 4 to 10 % of trafilatura's time (6,000 elements a page). This one answers the same from
tables that lxml reads in C, so whoever uses a parser with it sees the same objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.etree import ElementNamespaceClassLookup


def element_classes() -> ElementNamespaceClassLookup:
    """Return the lookup: for each tag, comment, processing instruction and entity the class that lxml.html has."""
    from lxml import etree, html

    kinds = etree.ElementDefaultClassLookup(
        element=html.HtmlElement, comment=html.HtmlComment, pi=html.HtmlProcessingInstruction, entity=html.HtmlEntity
    )
    lookup = etree.ElementNamespaceClassLookup(kinds)
    lookup.get_namespace(None).update(html.HtmlElementClassLookup()._element_classes)
    return lookup
