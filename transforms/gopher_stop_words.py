"""Stop words by language, for the rule of Gopher that wants two of them in a text.

The paper gives eight for English: the, be, to, of, and, that, have, with. The lists of other languages are ours: words
of the same kinds (articles, "to be", "to have", "and", "that", "with", common prepositions), each one to `find_words`.
Languages without spaces have theirs as single characters, as words there are; Thai, Lao, Khmer and Burmese have none,
as words there are parts of words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ENGLISH: Final = ("the", "be", "to", "of", "and", "that", "have", "with")
"""The paper's stop words."""

GERMAN: Final = ("der", "die", "das", "sein", "zu", "von", "und", "dass", "haben", "mit")
"""The same words in German, the article in its three genders."""

STOP_WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "ar": ("في", "من", "على", "إلى", "أن", "التي", "الذي", "عن", "مع", "هذا", "كان", "ما"),
        "cs": ("a", "je", "se", "na", "v", "že", "s", "do", "to", "být", "který"),
        "da": ("og", "er", "at", "en", "det", "den", "af", "til", "med", "som", "har"),
        "de": GERMAN,
        "el": ("και", "το", "του", "της", "η", "ο", "την", "να", "με", "από", "είναι", "στην"),
        "en": ENGLISH,
        "es": ("el", "la", "de", "que", "y", "a", "en", "ser", "los", "con", "haber", "las"),
        "fi": ("ja", "on", "ei", "että", "se", "oli", "joka", "kun", "mutta", "ovat"),
        "fr": ("le", "la", "les", "de", "et", "à", "être", "que", "avec", "avoir", "des", "un"),
        "hi": ("के", "में", "है", "की", "और", "से", "का", "को", "पर", "यह", "हैं", "कि"),
        "hu": ("a", "az", "és", "hogy", "nem", "is", "egy", "van", "volt", "ez"),
        "id": ("yang", "dan", "di", "dengan", "untuk", "dari", "ini", "itu", "pada", "adalah"),
        "it": ("il", "la", "di", "e", "che", "essere", "con", "avere", "per", "un", "una", "le"),
        "ja": ("の", "は", "に", "を", "が", "と", "で", "た"),
        "nl": ("de", "het", "een", "van", "en", "dat", "zijn", "te", "met", "hebben", "in"),
        "no": ("og", "er", "det", "en", "av", "til", "med", "som", "har", "på", "at"),
        "pl": ("i", "w", "na", "z", "że", "jest", "się", "do", "to", "być", "nie"),
        "pt": ("o", "a", "de", "que", "e", "ser", "com", "os", "em", "ter", "um", "uma"),
        "ro": ("și", "de", "a", "în", "la", "cu", "că", "este", "un", "o", "din", "care"),
        "ru": ("и", "в", "на", "не", "что", "с", "быть", "по", "к", "из", "как", "это"),
        "sv": ("och", "att", "det", "en", "är", "av", "som", "med", "har", "till", "den"),
        "tr": ("ve", "bir", "bu", "da", "de", "için", "ile", "olarak", "olan", "çok"),
        "uk": ("і", "в", "на", "не", "що", "з", "та", "до", "у", "за", "це"),
        "vi": ("và", "của", "là", "các", "có", "được", "trong", "cho", "với", "một", "những"),
        "zh": ("的", "是", "在", "和", "有", "不", "了", "为", "與", "与", "這", "这"),
    }
)
"""Stop words by BCP 47 language."""
