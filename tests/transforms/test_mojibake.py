"""Mojibake: what is repaired, what is left alone. The corpora of ../shared are measured by benchmarks.encodings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.documents import batch_of, kept_texts
from transforms.mojibake import READ_AS, RepairMojibake, _masks, _suspects, characters_of
from transforms.segmentation import text_buffers

GERMAN = "Die Straße führt über den Fluß, schön für Fußgänger – „immer“."
RUSSIAN = "Дорога ведёт через реку и дальше в лес, где живут медведи."
JAPANESE = "この道は川を渡り、森へと続いています。"
GREEK = "Ο δρόμος περνά το ποτάμι και φτάνει ως το δάσος."


PIECES = ("Ã", "©", "â€™", "\u00a0", "»", "\x93", "Ãƒ")


def read_as(encoding: str, text: str) -> str:
    return "".join(characters_of(encoding)[byte] for byte in text.encode())


def repaired(text: str) -> str:
    return kept_texts(RepairMojibake().apply(batch_of([text])))[0]


@pytest.mark.parametrize("encoding", READ_AS)
@pytest.mark.parametrize("text", [GERMAN, RUSSIAN, JAPANESE, GREEK])
@pytest.mark.parametrize("times", [1, 2])
def test_text_read_wrongly_as_a_whole_is_restored(encoding: str, text: str, times: int) -> None:
    misread = text
    for _ in range(times):
        misread = read_as(encoding, misread)
    if "\ufffd" in misread:
        pytest.skip("bytes were lost")
    assert repaired(misread) in (text, misread)  # what could be two texts is left
    if encoding in ("windows-1252", "windows-1251", "koi8-r", "macintosh"):
        assert repaired(misread) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Où est l’été ? Donâ€™t ask – je ne sais.", "Où est l’été ? Don’t ask – je ne sais."),
        ("schÃ¶n ist größer", "schön ist größer"),
        ("Ein schÃƒÂ¶ner Tag, größer", "Ein schöner Tag, größer"),
        ("в лесу РјРµРґРІРµРґРё спят", "в лесу медведи спят"),
        ("naïve: 9\x9610 and \x93this\x94", "naïve: 9–10 and “this”"),
        ("Ã¤ und Ã¶ und Ã¼", "ä und ö und ü"),
        ("caf\u00c3\u0083\u00c2\u00a9s, naïve", "cafés, naïve"),
    ],
)
def test_parts_of_a_text_are_repaired_where_it_cannot_be_chance(text: str, expected: str) -> None:
    assert repaired(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        GERMAN, RUSSIAN, JAPANESE, GREEK,
        "Il est allé au « café\u00a0» ; « l’été\u00a0» aussi.", "NÃO É AMANHû", "A IRMÖ 9", "TAKPEKPEGÃ, GBEƑÃ",
        "Він їв. Вірю, Рівне, Ціна – Сіль.", "Rosa\u00a0×\u00a0media", "25\u00a0°C, Â and Ã stand for letters; Ã©",
        "ÀÉÎÕÜ àéîõü ß»", "₤ 5 · £ 7 · ½ ¼ ¾", "\u0085 next line", "Đường Âu Cơ, Ôn Đới", "Ελλάς «Ο»", "Ş İ Ğ «ı»",
        "\x81\x93",         "Șapte «Â»", "Žena Šš", "Ñandú, ¿qué?",
    ],
)  # fmt: skip
def test_clean_text_is_left_alone(text: str) -> None:
    assert repaired(text) == text


@settings(max_examples=80)
@given(
    st.lists(
        st.one_of(st.sampled_from([GERMAN[:20], RUSSIAN[:12], *PIECES]), st.text(max_size=6)), max_size=8
    ).map("".join),
    st.sampled_from(READ_AS),
    st.integers(0, 2),
)  # fmt: skip
def test_repair_counts_exactly_changes_nothing_twice_and_sees_what_it_skips(
    text: str, encoding: str, times: int
) -> None:
    for _ in range(times):
        text = read_as(encoding, text)
    outcome = RepairMojibake().apply(batch_of([text]))
    result = kept_texts(outcome)[0]
    edits = outcome.edits.to_pylist()
    assert len(text) + sum(row["inserted"] for row in edits) == len(result) + sum(row["cut"] for row in edits)
    assert repaired(result) == result
    assert result == RepairMojibake().repair(text)[0]  # the quick look misses nothing


def test_quick_look_skips_clean_texts() -> None:
    data, bounds = text_buffers(batch_of([GERMAN, JAPANESE, GREEK, "plain", ""]).column("text"))
    assert not _suspects(data, bounds, _masks()).any()


def test_encodings_can_be_chosen_and_unknown_ones_are_refused() -> None:
    assert RepairMojibake(read_as=("koi8-r",)).repair("schÃ¶n")[0] == "schÃ¶n"
    with pytest.raises(ValueError, match="latin-1"):
        RepairMojibake(read_as=("latin-1",))
