"""A type checker for jaxtyping: it checks the arrays of a call, and leaves all other types to mypy."""

import functools
import inspect
import types
import typing

from jaxtyping import AbstractArray


def typechecked(function):
    """Return `function` so that it raises TypeError where an array has not the axes of its annotation."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            _check(name, value, signature.parameters[name].annotation)
        result = function(*args, **kwargs)
        _check("result", result, signature.return_annotation)
        return result

    return wrapped


def _check(name, value, annotation):
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        if not any(_fits(value, option) for option in typing.get_args(annotation)):
            raise TypeError(f"{name}: {value} is none of {annotation}")
    elif typing.get_origin(annotation) is tuple and isinstance(value, tuple):
        for item, kind in zip(value, typing.get_args(annotation), strict=False):
            _check(name, item, kind)
    elif not _fits(value, annotation):
        raise TypeError(f"{name}: {value} is not {annotation}")


def _fits(value, kind):
    if isinstance(kind, type) and (kind is type(None) or issubclass(kind, AbstractArray)):
        return isinstance(value, kind)
    return True
