"""Transforms: what happens to documents. Pure: Arrow in, Arrow out; no storage, no stages, no Ray."""

from transforms.add_columns import AddColumns
from transforms.benchmark_items import Benchmark
from transforms.contamination import Decontaminate
from transforms.datatrove_steps import Datatrove
from transforms.decorators import add_columns, edit_text, keep_if
from transforms.exact import exact
from transforms.extraction import ExtractText
from transforms.fitted_filter import FittedFilter
from transforms.gopher import ENGLISH, GERMAN, GopherQuality, GopherRepetition
from transforms.language import Language
from transforms.minhash import MinHash
from transforms.normalise import NormalizeText
from transforms.outcome import Outcome, SchemaError, Transform
from transforms.paragraph_language import CutOtherLanguages, JudgeParagraphs, MainLanguageShare, ParagraphLanguages
from transforms.pii import MaskPII
from transforms.predicates import field
from transforms.sample import Sample
from transforms.switch import Switch
from transforms.templates import TemplateRule
from transforms.tokens import Tokenizer
from transforms.url_lists import URLList, WordList
from transforms.url_rules import URLAllowList, URLDenyList, URLDomain, URLWords, datatrove_lists
from transforms.user_function import EditText, KeepIf
from transforms.where import Where
from transforms.withdraw import WithdrawList

__all__ = [
    "ENGLISH",
    "GERMAN",
    "AddColumns",
    "Benchmark",
    "CutOtherLanguages",
    "Datatrove",
    "Decontaminate",
    "EditText",
    "ExtractText",
    "FittedFilter",
    "GopherQuality",
    "GopherRepetition",
    "JudgeParagraphs",
    "KeepIf",
    "Language",
    "MainLanguageShare",
    "MaskPII",
    "MinHash",
    "NormalizeText",
    "Outcome",
    "ParagraphLanguages",
    "Sample",
    "SchemaError",
    "Switch",
    "TemplateRule",
    "Tokenizer",
    "Transform",
    "URLAllowList",
    "URLDenyList",
    "URLDomain",
    "URLList",
    "URLWords",
    "Where",
    "WithdrawList",
    "WordList",
    "add_columns",
    "datatrove_lists",
    "edit_text",
    "exact",
    "field",
    "keep_if",
]
