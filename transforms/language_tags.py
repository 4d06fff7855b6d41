"""From the labels of language classifiers to BCP 47 language subtags (RFC 5646).

Two families of labels are read: the codes of Wikipedias, as lid.176 has them ("en", "als"), and ISO 639-3 with a
script, as NLLB, OpenLID and GlotLID have them ("eng_Latn"). RFC 5646, section 2.2.1, asks for the shortest code of a
language, so "eng" is "en"; of a macrolanguage that everybody means one language by, the macrolanguage stands for it, as
in CLDR's aliases ("cmn" is "zh", "arb" is "ar"). Two of Wikipedia's codes mean something else than ISO's: "als" there
is Alemannic ("gsw"; to ISO 639-3 it is Tosk Albanian), "bh" is Bhojpuri ("bho"). A label of neither family stays as it
is.

Facts of ISO 639-1, ISO 639-3 and CLDR 45; no library, as the answer is part of documents.
"""

from __future__ import annotations

import re
from typing import Final

_SHORT: Final = """
aa=aar ab=abk ae=ave af=afr ak=aka am=amh an=arg ar=ara,arb as=asm av=ava ay=aym,ayr az=aze,azj ba=bak be=bel bg=bul
bi=bis bm=bam bn=ben bo=bod br=bre bs=bos ca=cat ce=che ch=cha co=cos cr=cre cs=ces cu=chu cv=chv cy=cym da=dan de=deu
dv=div dz=dzo ee=ewe el=ell en=eng eo=epo es=spa et=est,ekk eu=eus fa=fas,pes ff=ful fi=fin fj=fij fo=fao fr=fra fy=fry
ga=gle gd=gla gl=glg gn=grn,gug gu=guj gv=glv ha=hau he=heb hi=hin ho=hmo hr=hrv ht=hat hu=hun hy=hye hz=her ia=ina
id=ind ie=ile ig=ibo ii=iii ik=ipk io=ido is=isl it=ita iu=iku ja=jpn jv=jav ka=kat kg=kon ki=kik kj=kua kk=kaz kl=kal
km=khm kn=kan ko=kor kr=kau ks=kas ku=kur,kmr kv=kom kw=cor ky=kir la=lat lb=ltz lg=lug li=lim ln=lin lo=lao lt=lit
lu=lub lv=lav,lvs mg=mlg,plt mh=mah mi=mri mk=mkd ml=mal mn=mon,khk mr=mar ms=msa,zsm mt=mlt my=mya na=nau nb=nob nd=nde
ne=nep,npi ng=ndo nl=nld nn=nno no=nor nr=nbl nv=nav ny=nya oc=oci oj=oji om=orm,gaz or=ori,ory os=oss pa=pan pi=pli
pl=pol ps=pus,pbt pt=por qu=que,quy rm=roh rn=run ro=ron ru=rus rw=kin sa=san sc=srd sd=snd se=sme sg=sag sh=hbs si=sin
sk=slk sl=slv sm=smo sn=sna so=som sq=sqi,als sr=srp ss=ssw st=sot su=sun sv=swe sw=swa,swh ta=tam te=tel tg=tgk th=tha
ti=tir tk=tuk tl=tgl tn=tsn to=ton tr=tur ts=tso tt=tat tw=twi ty=tah ug=uig uk=ukr ur=urd uz=uzb,uzn ve=ven vi=vie
vo=vol wa=wln wo=wol xh=xho yi=yid,ydd yo=yor za=zha zh=zho,cmn zu=zul
"""
"""Two-letter codes and the three-letter ones that they stand for."""

_PAIRS: Final = [pair.partition("=") for pair in _SHORT.strip("\n").replace("\n", " ").split(" ")]
SHORTEST: Final = {code: short for short, _, codes in _PAIRS for code in codes.split(",")}
WIKIPEDIA: Final = {"als": "gsw", "bh": "bho"}
_LABEL: Final = re.compile(r"([a-z]{2,3})(?:[_-]([A-Z][a-z]{3}))?")


def language_of(label: str) -> str:
    """Return the language subtag of a model's label, without "__label__"; the label itself where it is of no family."""
    found = _LABEL.fullmatch(label)
    if found is None:
        return label
    code = found[1]
    return WIKIPEDIA[code] if found[2] is None and code in WIKIPEDIA else SHORTEST.get(code, code)


def range_of(tag: str) -> str:
    """Return a language range as a user writes it ("de", "deu", "zh-Hant", "zho_Hant") in one form: "de", "zh-Hant"."""
    found = _LABEL.fullmatch(tag)
    if found is None:
        return tag
    code = SHORTEST.get(found[1], found[1])
    return f"{code}-{found[2]}" if found[2] else code
