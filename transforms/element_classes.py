"""The classes that lxml.html gives the elements of a page, found without a call of Python for each element.

Each element that Python touches gets an object, of the class that the parser's lookup names. That of lxml.html is
written in Python and took 4 to 10 % of trafilatura's time (6,000 elements a page). This one answers the same from
tables that lxml reads in C, so whoever uses a parser with it sees the same objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.etree import ElementClassLookup


def element_classes() -> ElementClassLookup:
    """Return the lookup: for each tag, comment, processing instruction and entity the class that lxml.html has.

    An lxml that keeps its table elsewhere gives its own lookup, slower and to the same effect.
    """
    from lxml import etree, html

    own = html.HtmlElementClassLookup()
    table = getattr(own, "_element_classes", None)
    if table is None:
        return own
    kinds = etree.ElementDefaultClassLookup(
        element=html.HtmlElement, comment=html.HtmlComment, pi=html.HtmlProcessingInstruction, entity=html.HtmlEntity
    )
    lookup = etree.ElementNamespaceClassLookup(kinds)
    lookup.get_namespace(None).update(table)
    return lookup
