"""Showing configuration to people: transforms with the fields that are not at their default, graphs as trees."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from curate.recipes.cells import Cells, TrainedTokenizer
from curate.recipes.graph import (
    Apply,
    CutRepeats,
    Dataset,
    DatasetWide,
    DropAlike,
    DropEqual,
    Group,
    HoldOut,
    Join,
    Keep,
    Read,
)
from curate.recipes.models import FittedModel, models_in
from curate.recipes.reference import references_of
from transforms.exact_numbers import decimal_text
from transforms.predicates import Both, Comparison, Either, IsIn, IsNull, Not, Predicate

Product = Dataset | TrainedTokenizer | Cells | FittedModel


def show(value: Any) -> str:
    """Return `value` as one would write it in a recipe, without what is at its default."""
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, FittedModel):
        return f"the model {value.name!r}"
    if isinstance(value, Predicate):
        return show_predicate(value)
    if isinstance(value, Path):
        return value.name
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(show, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ", ".join(f"{field.name}={show(getattr(value, field.name))}" for field in _told(value))
        return f"{type(value).__name__}({fields})"
    if isinstance(value, Callable):  # type: ignore[arg-type]
        return str(getattr(value, "__name__", type(value).__name__))
    return repr(value)


def show_predicate(predicate: Predicate) -> str:
    """Return a condition as it is written in a recipe."""
    if isinstance(predicate, Comparison):
        return f"field({predicate.column!r}) {predicate.operator} {predicate.value!r}"
    if isinstance(predicate, IsIn):
        return f"field({predicate.column!r}).isin({predicate.values!r})"
    if isinstance(predicate, IsNull):
        return f"field({predicate.column!r}).is_null()"
    if isinstance(predicate, Not):
        return f"~({show_predicate(predicate.operand)})"
    if isinstance(predicate, (Both, Either)):
        sign = "&" if isinstance(predicate, Both) else "|"
        return f"({show_predicate(predicate.left)}) {sign} ({show_predicate(predicate.right)})"
    return repr(predicate)


def _told(value: Any) -> Iterator[dataclasses.Field[Any]]:
    for field in dataclasses.fields(value):
        default = field.default
        if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        derived = field.name == "behaviour" or not field.init
        if not derived and getattr(value, field.name) != default:
            yield field


def show_outputs(outputs: Mapping[str, Product]) -> str:
    """Return the trees of named outputs: what each is made from, in the order in which it happens.

    What several are made from is shown once, and named where it comes again.
    """
    tree = _Tree()
    return "\n".join(line for name, product in outputs.items() for line in [f"{name}:", *tree.lines(product, "  ")])


class _Tree:
    def __init__(self) -> None:
        self.shown: dict[int, str] = {}

    def lines(self, product: Product, indent: str) -> Iterator[str]:
        if isinstance(product, (TrainedTokenizer, Cells, FittedModel)):
            yield f"{indent}{product.fit.verb if isinstance(product, FittedModel) else _tokens(product)}"
            yield from self._parents(product.inputs, indent)
            return
        operation = product.operation
        if isinstance(operation, Read):
            yield f"{indent}{operation.reader}"
        elif isinstance(operation, Apply):
            yield from self.lines(operation.input, indent)
            yield f"{indent}→ {show(operation.transform)}"
            yield from self._parents(list(models_in(operation.transform)), indent + "  ")
        elif isinstance(operation, Keep):
            yield from self.lines(operation.input, indent)
            yield f"{indent}→ keep {product.name!r}"
        else:
            yield f"{indent}{_wide(operation)}"
            yield from self._parents(operation.inputs, indent)

    def _parents(self, parents: Sequence[Product], indent: str) -> Iterator[str]:
        for parent in parents:
            if id(parent) in self.shown:
                yield f"{indent}  {parent.name}: see above"
            else:
                self.shown[id(parent)] = parent.name
                yield f"{indent}  {parent.name}:"
                yield from self.lines(parent, indent + "    ")


def _wide(operation: DatasetWide) -> str:
    if isinstance(operation, (CutRepeats, DropEqual, DropAlike)):
        return _repeats(operation)
    if isinstance(operation, Group):
        return f"group by {operation.by}" + (f", ordered by {', '.join(operation.order)}" if operation.order else "")
    if isinstance(operation, Join):
        return "join " + ", ".join(ours if ours == its else f"{ours} = {its}" for ours, its in operation.columns)
    if isinstance(operation, HoldOut):
        size = f"{operation.characters:,} characters" if operation.characters else f"{operation.documents:,} documents"
        per = f" per {operation.per}" if operation.per else ""
        return f"hold out {size}{per}: the part {operation.part!r}"
    method = "equal texts" if operation.method is None else show(operation.method)
    within = f" within {operation.within}" if operation.within else ""
    limits = "".join(f", at most {share} of {source}" for source, share in operation.max_removed)
    verb = "deduplicate" if operation.action == "drop" else "tag duplicates by"
    more = f", keeping {operation.keep}" if operation.keep > 1 else ""
    more += f", counting {operation.count}" if operation.count else ""
    more += f", against {', '.join(repr(each.name) for each in operation.against)}" if operation.against else ""
    rule = operation.without_templates
    more += f", without what more than {decimal_text(rule.ratio)} of a source's documents have" if rule else ""
    return f"{verb} {method}{within}, preferring {', '.join(operation.prefer)}{limits}{more}"


def _repeats(operation: CutRepeats | DropEqual | DropAlike) -> str:
    names = ", ".join(repr(each.name) for each in references_of(operation.against))
    against = f" against {names}" if names else ""
    preferring = f", preferring {', '.join(operation.prefer)}" if operation.prefer else ""
    preferring += "".join(f", at most {share} of {source}" for source, share in operation.max_removed)
    if isinstance(operation, CutRepeats):
        return f"cut {show(operation.what)}{against}{preferring}"
    if isinstance(operation, DropAlike):
        clusters = f"{operation.clusters:,} clusters" if operation.clusters else "clusters"
        at = f"at cosine {decimal_text(operation.similarity)} in {clusters} of {show(operation.embedder)}"
        return f"deduplicate semantically {at}{against}{preferring}"
    what = "texts" if operation.form is None else "URLs"
    return f"deduplicate equal {what} in {operation.column}{against}{preferring}"


def _tokens(product: TrainedTokenizer | Cells) -> str:
    if isinstance(product, TrainedTokenizer):
        return f"train tokenizer of {product.vocab_size:,} ids, EOS {product.eos or 'none'}"
    by = f" by {', '.join(product.by)}" if product.by else ""
    return f"tokenize{by} with {product.tokenizer or 'the tokenizer below'}"
