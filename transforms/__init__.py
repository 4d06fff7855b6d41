"""Transforms: what happens to documents. Pure: Arrow in, Arrow out; no storage, no stages, no Ray."""

from typing import TYPE_CHECKING

from transforms.lazy_names import lazy_names

if TYPE_CHECKING:
    from transforms.added_columns import AddColumns
    from transforms.benchmark_items import Benchmark
    from transforms.benchmark_registry import known_benchmark
    from transforms.c4_rules import C4Documents, C4Lines, MC4Paragraphs
    from transforms.code_rules import CodeQuality, GeneratedCode
    from transforms.contamination import Decontaminate
    from transforms.count_by import CountBy
    from transforms.datatrove_steps import Datatrove
    from transforms.decorators import add_columns, edit_text, keep_if
    from transforms.embedding import Embedder, HashedTfidf
    from transforms.exact_numbers import exact
    from transforms.extraction import ExtractText
    from transforms.fineweb_rules import FineWebQuality
    from transforms.fitted import LocalFile
    from transforms.fitted_filter import FittedFilter
    from transforms.foreign_formats import ExtractPdf, ExtractWikitext
    from transforms.gopher_rules import GopherQuality, GopherRepetition
    from transforms.gopher_stop_words import ENGLISH, GERMAN, STOP_WORDS
    from transforms.language import Language
    from transforms.learners import EmbeddedLinear, FastText, HashedLinear
    from transforms.marks import SENTENCE_ENDS
    from transforms.minhash import MinHash
    from transforms.mojibake import RepairMojibake
    from transforms.normalise import NormalizeText
    from transforms.optout import RespectOptOut
    from transforms.outcome import Outcome, SchemaError, Transform
    from transforms.paragraph_language import CutOtherLanguages, JudgeParagraphs, MainLanguageShare, ParagraphLanguages
    from transforms.pii import MaskPII
    from transforms.predicates import field
    from transforms.presets import by_language, c4, code, dclm_baseline, fineweb, gopher, gopher_quality, refinedweb
    from transforms.quality import Level, Quality, ScoreAtLeast, score_at
    from transforms.refinedweb_rules import RefinedWebLines
    from transforms.sample import Sample
    from transforms.second_opinion import SecondOpinion
    from transforms.switch import Switch
    from transforms.templates import TemplateRule
    from transforms.tokens import Tokenizer
    from transforms.topics import AssignTopic
    from transforms.url_lists import URLList, WordList
    from transforms.url_rules import URLAllowList, URLDenyList, URLDomain, URLWords, datatrove_lists
    from transforms.user_function import EditText, KeepIf
    from transforms.where import Where
    from transforms.withdraw import WithdrawList

__all__ = [
    "ENGLISH",
    "GERMAN",
    "SENTENCE_ENDS",
    "STOP_WORDS",
    "AddColumns",
    "AssignTopic",
    "Benchmark",
    "C4Documents",
    "C4Lines",
    "CodeQuality",
    "CountBy",
    "CutOtherLanguages",
    "Datatrove",
    "Decontaminate",
    "EditText",
    "EmbeddedLinear",
    "Embedder",
    "ExtractPdf",
    "ExtractText",
    "ExtractWikitext",
    "FastText",
    "FineWebQuality",
    "FittedFilter",
    "GeneratedCode",
    "GopherQuality",
    "GopherRepetition",
    "HashedLinear",
    "HashedTfidf",
    "JudgeParagraphs",
    "KeepIf",
    "Language",
    "Level",
    "LocalFile",
    "MC4Paragraphs",
    "MainLanguageShare",
    "MaskPII",
    "MinHash",
    "NormalizeText",
    "Outcome",
    "ParagraphLanguages",
    "Quality",
    "RefinedWebLines",
    "RepairMojibake",
    "RespectOptOut",
    "Sample",
    "SchemaError",
    "ScoreAtLeast",
    "SecondOpinion",
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
    "by_language",
    "c4",
    "code",
    "datatrove_lists",
    "dclm_baseline",
    "edit_text",
    "exact",
    "field",
    "fineweb",
    "gopher",
    "gopher_quality",
    "keep_if",
    "known_benchmark",
    "refinedweb",
    "score_at",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
