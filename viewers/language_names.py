"""English names of languages by code (ISO 639-1, and those of ISO 639-3 that lid.176 knows), for readers who search."""

from __future__ import annotations

from typing import Final

_LISTED: Final = """
aa Afar, ab Abkhaz, ae Avestan, af Afrikaans, ak Akan, als Alemannic German, am Amharic, an Aragonese, ar Arabic,
arz Egyptian Arabic, as Assamese, ast Asturian, av Avar, ay Aymara, az Azerbaijani, azb South Azerbaijani, ba Bashkir,
bar Bavarian, bcl Central Bikol, be Belarusian, bg Bulgarian, bh Bihari, bi Bislama, bm Bambara, bn Bengali, bo Tibetan,
bpy Bishnupriya, br Breton, bs Bosnian, bxr Buryat, ca Catalan, cbk Chavacano, ce Chechen, ceb Cebuano, ch Chamorro,
ckb Central Kurdish, co Corsican, cr Cree, cs Czech, cu Church Slavonic, cv Chuvash, cy Welsh, da Danish, de German,
diq Zazaki, dsb Lower Sorbian, dty Doteli, dv Divehi, dz Dzongkha, ee Ewe, el Greek, eml Emilian-Romagnol, en English,
eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, ff Fula, fi Finnish, fj Fijian, fo Faroese, fr French,
frr North Frisian, fy West Frisian, ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, gom Goan Konkani,
gu Gujarati, gv Manx, ha Hausa, he Hebrew, hi Hindi, hif Fiji Hindi, ho Hiri Motu, hr Croatian, hsb Upper Sorbian,
ht Haitian Creole, hu Hungarian, hy Armenian, hz Herero, ia Interlingua, id Indonesian, ie Interlingue, ig Igbo,
ii Nuosu, ik Inupiaq, ilo Ilocano, io Ido, is Icelandic, it Italian, iu Inuktitut, ja Japanese, jbo Lojban,
jv Javanese, ka Georgian, kg Kongo, ki Kikuyu, kj Kuanyama, kk Kazakh, kl Greenlandic, km Khmer, kn Kannada, ko Korean,
kr Kanuri, krc Karachay-Balkar, ks Kashmiri, ku Kurdish, kv Komi, kw Cornish, ky Kyrgyz, la Latin, lb Luxembourgish,
lez Lezgian, lg Ganda, li Limburgish, lmo Lombard, ln Lingala, lo Lao, lrc Northern Luri, lt Lithuanian,
lu Luba-Katanga, lv Latvian, mai Maithili, mg Malagasy, mh Marshallese, mhr Meadow Mari, mi Maori,
min Minangkabau, mk Macedonian,
ml Malayalam, mn Mongolian, mr Marathi, mrj Hill Mari, ms Malay, mt Maltese, mwl Mirandese, my Burmese, myv Erzya,
mzn Mazanderani, na Nauruan, nah Nahuatl, nap Neapolitan, nb Norwegian Bokmål, nd Northern Ndebele, nds Low German,
ne Nepali, new Newar, ng Ndonga, nl Dutch, nn Norwegian Nynorsk, no Norwegian, nr Southern Ndebele, nv Navajo,
ny Chichewa, oc Occitan, oj Ojibwe, om Oromo, or Odia, os Ossetian, pa Punjabi, pam Kapampangan, pfl Palatine German,
pi Pali, pl Polish, pms Piedmontese, pnb Western Punjabi, ps Pashto, pt Portuguese, qu Quechua, rm Romansh, rn Kirundi,
ro Romanian, ru Russian, rue Rusyn, rw Kinyarwanda, sa Sanskrit, sah Yakut, sc Sardinian, scn Sicilian, sco Scots,
sd Sindhi, se Northern Sami, sg Sango, sh Serbo-Croatian, si Sinhala, sk Slovak, sl Slovene, sm Samoan, sn Shona,
so Somali, sq Albanian, sr Serbian, ss Swati, st Sotho, su Sundanese, sv Swedish, sw Swahili, ta Tamil, te Telugu,
tg Tajik, th Thai, ti Tigrinya, tk Turkmen, tl Tagalog, tn Tswana, to Tongan, tr Turkish, ts Tsonga, tt Tatar, tw Twi,
ty Tahitian, tyv Tuvan, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, ve Venda, vec Venetian, vep Veps, vi Vietnamese,
vls West Flemish, vo Volapük, wa Walloon, war Waray, wo Wolof, wuu Wu Chinese, xal Kalmyk, xh Xhosa, xmf Mingrelian,
yi Yiddish, yo Yoruba, yue Cantonese, za Zhuang, zh Chinese, zu Zulu
"""

NAMES: Final = dict(entry.strip().split(" ", 1) for entry in _LISTED.replace("\n", " ").split(",") if entry.strip())
"""Code → name."""


def language_name(code: str) -> str:
    """Return name and code of a language, "Turkish (tr)"; the code alone where it has no name here."""
    return f"{NAMES[code]} ({code})" if code in NAMES else code
