"""Texts of four clear topics, made of word lists: English seafaring and baking, German gardening, Python code."""

from __future__ import annotations

import random
from typing import Final

SUBJECTS: Final = {
    ("en", "sea"): "harbour sail mast anchor captain tide deck storm rudder sailor voyage keel",
    ("en", "bread"): "flour dough oven yeast crust knead loaf baker butter recipe kitchen salt",
    ("de", "garten"): "Garten Beet Rosen Gärtner Spaten Erde Tomaten Regen Hecke Samen Blüten Unkraut",
    ("en", "code"): "def return self import class lambda yield assert raise except pass none",
}
PLAIN: Final = {
    "en": "the and of was with that from this were they have their into when",
    "de": "der die und das nicht mit eine sich auf dem auch war wurde von",
}


def texts_about_topics(each: int, words: int = 60) -> list[tuple[str, str, str]]:
    """Return (language, subject, text) of `each` documents of every subject, subjects one after the other."""
    random_words = random.Random(7)
    found = []
    for (language, subject), listed in SUBJECTS.items():
        own, plain = listed.split(), PLAIN[language].split()
        for _ in range(each):
            drawn = [random_words.choice(own if random_words.random() < 0.35 else plain) for _ in range(words)]
            found.append((language, subject, " ".join(drawn) + "."))
    return found
