"""Undeclared bytes: small texts of our own; `benchmarks.encodings` measures on many."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms import encoding_detection
from transforms.encoding_detection import compare, detect, judge
from transforms.web_codecs import decode_as

TEXTS = {
    "german": "Am Morgen öffneten die Händler ihre Läden, und über den Dächern hörte man Möwen schreien. Überall roch "
    "es nach frischem Brot, und die Straße füllte sich.",
    "french": "Le marché était déjà plein à l’aube : pêcheurs, fermières et élèves y échangeaient des nouvelles. Où "
    "êtes-vous allés cet été ?",
    "polish": "Rano kupcy otwierali sklepy, a nad dachami słychać było krzyk mew. Wszędzie pachniało świeżym chlebem, "
    "źle się działo tylko łąkom.",
    "russian": "Утром торговцы открывали лавки, над крышами кричали чайки. Везде пахло свежим хлебом, и улица "
    "наполнялась людьми.",
    "greek": "Το πρωί οι έμποροι άνοιγαν τα μαγαζιά τους και πάνω από τις στέγες ακούγονταν οι γλάροι. "
    "Άλλοι έφταναν αργά.",
    "arabic": "في الصباح كان التجار يفتحون دكاكينهم، وفوق السطوح كانت النوارس تصيح. وكانت رائحة الخبز في كل مكان.",
    "hebrew": "בבוקר פתחו הסוחרים את חנויותיהם, ומעל הגגות נשמעו השחפים. בכל מקום עמד ריח של לחם טרי.",
    "turkish": "Sabahleyin tüccarlar dükkânlarını açıyor, çatıların üzerinde martılar çığlık atıyordu. Her yer taze "
    "ekmek kokuyordu, sokak doluştu.",
    "thai": "ตอนเช้าพ่อค้าเปิดร้าน และได้ยินเสียงนกนางนวลร้องอยู่เหนือหลังคา กลิ่นขนมปังสดอยู่ทุกที่",
    "chinese": "早晨商人们打开店门，屋顶上传来海鸥的叫声。到处都是新鲜面包的香味，街上渐渐挤满了人。",
    "traditional": "早晨商人們打開店門，屋頂上傳來海鷗的叫聲。到處都是新鮮麵包的香味，街上漸漸擠滿了人。",
    "japanese": "朝になると商人たちは店を開け、屋根の上ではカモメが鳴いていた。どこでも焼きたてのパンの香りがした。",
    "korean": "아침이면 상인들이 가게 문을 열고 지붕 위에서는 갈매기가 울었다. 어디서나 갓 구운 빵 냄새가 났다.",
}
CASES = [
    ("german", "windows-1252 macintosh"), ("french", "windows-1252 macintosh"), ("polish", "windows-1250 iso-8859-2"),
    ("russian", "windows-1251 koi8-r iso-8859-5 ibm866 x-mac-cyrillic"), ("greek", "windows-1253 iso-8859-7"),
    ("arabic", "windows-1256 iso-8859-6"), ("hebrew", "windows-1255"), ("turkish", "windows-1254"),
    ("thai", "windows-874"), ("chinese", "gb18030"), ("traditional", "big5"), ("japanese", "shift_jis euc-jp"),
    ("korean", "euc-kr"),
]  # fmt: skip
PYTHON = {"macintosh": "mac_roman", "x-mac-cyrillic": "mac_cyrillic", "windows-874": "cp874", "shift_jis": "cp932"}
PAIRS = [(name, encoding) for name, encodings in CASES for encoding in encodings.split()]


@pytest.mark.parametrize(("name", "encoding"), PAIRS)
def test_undeclared_text_of_a_language_is_read_as_it_was_written(name: str, encoding: str) -> None:
    codec = PYTHON.get(encoding, encoding.replace("windows-", "cp"))
    payload = b"<html><body><p class=x>" + TEXTS[name].encode(codec, "xmlcharrefreplace") + b"</p></body></html>"
    found = detect(payload)
    assert decode_as(found.encoding, payload) == payload.decode(codec)
    assert found.margin >= 0
    assert compare(payload, encoding, "koi8-u") > 0
    assert compare(payload, "koi8-u", encoding) < 0


@pytest.mark.parametrize("mark", ["®", "’", "—", "é", "»"])
def test_one_sign_in_much_ascii_is_windows_1252(mark: str) -> None:
    page = ("Nothing but plain words" * 50 + " and one " + mark + " of another kind").encode("cp1252")
    assert detect(page).encoding == "windows-1252"


def test_unknown_bytes_compare_as_equal() -> None:
    assert compare(b"\xe9\xe8", "iso-2022-kr", "windows-1252") == 0
    assert detect(b"").encoding == "windows-1252"
    assert detect(b"\0" * 64).encoding == "windows-1252"


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_any_bytes_are_judged_and_only_a_beginning_of_them(payload: bytes) -> None:
    found = detect(payload)
    decode_as(found.encoding, payload).encode("utf-8")  # raises on lone surrogates
    assert found.margin >= 0
    start = b"\xe9 " * encoding_detection.LEAST_HIGH
    assert judge(start + payload) == judge(start)


def test_statistics_have_the_pinned_digest() -> None:
    content = Path(encoding_detection.__file__).with_name("encoding_statistics.npz").read_bytes()
    assert hashlib.blake2b(content, digest_size=8).hexdigest() == "700fe6ddc48531bb"
