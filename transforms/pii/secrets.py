"""Credentials in text and code: the verdict on a candidate.

Formats that their issuers publish, each with its prefix and length; a longer or shorter run is none:

| issuer | form |
|---|---|
| AWS access key ids | ``AKIA``, ``ASIA``, ``ABIA``, ``ACCA`` and 16 base-32 characters |
| GitHub | ``ghp_``, ``gho_``, ``ghu_``, ``ghs_``, ``ghr_`` and 36 to 255; ``github_pat_`` and 22, ``_``, 59 |
| GitLab | ``glpat-`` and 20 to 64 |
| Google | ``AIza`` and 35 (API key), ``GOCSPX-`` and 28 (client secret) |
| Slack | ``xoxb-``, ``xoxp-``, ``xoxa-``, ``xoxr-``, ``xoxs-``, ``xoxe-`` (or ``xoxe.xoxp-``), ``xapp-`` and numbers |
| Stripe | ``sk_live_``, ``sk_test_``, ``rk_live_``, ``rk_test_`` and 16 to 247, ``whsec_`` and 32 to 64 |
| OpenAI, Anthropic | ``sk-…T3BlbkFJ…``, ``sk-ant-…`` |
| Hugging Face, npm, PyPI, SendGrid | ``hf_`` and 34, ``npm_`` and 36, ``pypi-AgEI…``, ``SG.`` and 22, ``.``, 43 |
| JSON Web Tokens (RFC 7519) | three base64url parts, the first a JSON object with "alg" |
| private keys (RFC 7468, PGP, OpenSSH) | ``-----BEGIN … PRIVATE KEY-----`` to the end line, or the half that is there |

And, where nothing else tells: the *password of a URL* (``scheme://user:password@host``), and the *value assigned* to
a name that ends in password, secret, token, api key, access key, private key, credential …: 16 to 128 characters
without a space that look random (`_looks_random`). Left are placeholders (``your_key``, ``xxxxxxxx``, ``${TOKEN}``),
calls, names of variables, words, UUIDs, and digests, which no such name introduces. Only the value is masked.

Cost: constant per candidate; a private key is read to its end or from its start, at most `KEY_LENGTH` bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
from itertools import pairwise
from typing import Final

from transforms.pii.found import Found

_END: Final = rb"(?![0-9A-Za-z_-])"

TOKENS: Final = re.compile(
    rb"(?<![0-9A-Za-z_])(?:"
    rb"A(?:KI|SI|BI|CC)A[A-Z2-7]{16}(?![0-9A-Za-z_])"
    rb"|AIza[0-9A-Za-z_-]{35}"
    + _END
    + rb"|GOCSPX-[0-9A-Za-z_-]{28}"
    + _END
    + rb"|gh[pousr]_[0-9A-Za-z]{36,255}"
    + _END
    + rb"|github_pat_[0-9A-Za-z]{22}_[0-9A-Za-z]{59}"
    + _END
    + rb"|glpat-[0-9A-Za-z_-]{20,64}"
    + _END
    + rb"|(?:xoxe\.)?xox[abeprs]-[0-9A-Za-z]{1,16}-[0-9A-Za-z-]{10,220}"
    + _END
    + rb"|xapp-[0-9]-[0-9A-Z]{6,20}-[0-9]{6,20}-[0-9a-f]{32,128}"
    + _END
    + rb"|[sr]k_(?:live|test)_[0-9A-Za-z]{16,247}"
    + _END
    + rb"|whsec_[0-9A-Za-z+/]{32,64}={0,2}"
    + _END
    + rb"|sk-ant-[0-9A-Za-z_-]{32,200}"
    + _END
    + rb"|sk-(?:[a-z]{2,8}-)?[0-9A-Za-z_-]{16,80}T3BlbkFJ[0-9A-Za-z_-]{16,80}"
    + _END
    + rb"|hf_[A-Za-z]{34}"
    + _END
    + rb"|npm_[0-9A-Za-z]{36}"
    + _END
    + rb"|pypi-AgEI[0-9A-Za-z_-]{40,250}"
    + _END
    + rb"|SG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}"
    + _END
    + rb")"
)
TOKEN_STARTS: Final = (0, 2, 3, 4, 5, 6, 9)
"""How far before the trigger a token may start."""

JSON_WEB_TOKEN: Final = re.compile(rb"eyJ[0-9A-Za-z_-]{8,1020}+\.eyJ[0-9A-Za-z_-]{8,16380}+\.[0-9A-Za-z_-]{16,1400}+")
KEY_LENGTH: Final = 32_768
KEY_START: Final = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
KEY_BODY: Final = re.compile(
    rb"(?:(?!-----)[^<>]){0,%d}+-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----" % KEY_LENGTH
)
KEY_LINES: Final = re.compile(rb"(?:(?:[\s\"'+,]|\\[nr]){1,16}+[0-9A-Za-z+/=]{16,128}+){1,400}+")
KEY_END: Final = re.compile(rb"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
KEY_LINE: Final = re.compile(rb"[\s\"',]*+([0-9A-Za-z+/=]{1,128}+)(?:[\s\"'+,]|\\[nr])*+")
KEY_CONTENT: Final = re.compile(rb"[0-9A-Za-z+/]{32}")

USER_INFO: Final = re.compile(rb"://[^\s/:@<>\"'`]{0,64}:([^\s/@<>\"'`]{1,96})\Z")
USER_INFO_LENGTH: Final = 164

LABEL: Final = re.compile(
    rb"(?:passw(?:or)?d|passwd|pwd|pass|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key"
    rb"|auth[_-]?key|account[_-]?key|encryption[_-]?key|signing[_-]?key|credentials?)[\"'`\]]{0,2}[ \t]{0,2}\Z",
    re.IGNORECASE,
)
LABEL_LENGTH: Final = 24
QUOTED: Final = re.compile(rb"(?::=|=>|[:=])[ \t]{0,4}([\"'`])([!#-&*-;=?-~]{16,128}+)\1")
BARE: Final = re.compile(rb"(?::=|=>|[:=])[ \t]{0,4}([0-9A-Za-z+/_-]{16,128}+={0,2})(?=[\s\"',;&)}\]]|\Z)")
PLACEHOLDER: Final = re.compile(
    rb"example|sample|placeholder|your|change|dummy|insert|redacted|xxxx|\*\*\*|\.\.\.|1234567|abcdef|[$%#]?\{|\$\(|^\$"
    rb"|^(?:password|passwd|pass|secret|token|pwd)$",
    re.IGNORECASE,
)
UUID: Final = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

_CLASSES: Final = bytes(
    1 if 0x30 <= byte < 0x3A else 2 if 0x41 <= byte < 0x5B else 3 if 0x61 <= byte < 0x7B else 0 for byte in range(256)
)
"""Class of a byte: digit, capital, small letter, other."""


def token(text: bytes, trigger: int) -> Found | None:
    """Return the token of a published form whose prefix has its trigger at `trigger`."""
    for back in TOKEN_STARTS:
        if back <= trigger:
            match = TOKENS.match(text, trigger - back)
            if match:
                return Found(match.start(), match.end(), "secret")
    return None


def web_token(text: bytes, trigger: int) -> Found | None:
    """Return the JSON Web Token whose ``eyJ`` ends at `trigger`."""
    match = JSON_WEB_TOKEN.match(text, trigger - 2)
    if match is None:
        return None
    header = match[0].partition(b".")[0]
    try:
        decoded = base64.urlsafe_b64decode(header + b"=" * (-len(header) % 4))
    except binascii.Error:
        return None
    return Found(match.start(), match.end(), "secret") if b'"alg"' in decoded else None


def private_key(text: bytes, trigger: int) -> Found | None:
    """Return the block whose BEGIN or END stands at `trigger`, both markers with it where both are there.

    Without its END it reaches as far as lines of base64 follow, without its BEGIN as far back as they go.
    """
    end = KEY_END.match(text, trigger - 5)
    if end is not None:
        return _cut_key(text, end)
    start = KEY_START.match(text, trigger - 5)
    if start is None:
        return None
    body = KEY_BODY.match(text, start.end()) or KEY_LINES.match(text, start.end())
    if body is None or not KEY_CONTENT.search(body[0]):
        return None
    return Found(start.start(), body.end(), "secret")


def _cut_key(text: bytes, end: re.Match[bytes]) -> Found | None:
    """Return the rest of a block whose BEGIN is missing: the lines of base64 before its END."""
    marker = text.rfind(b"-----", max(0, end.start() - KEY_LENGTH), end.start())
    first = max(0, end.start() - KEY_LENGTH) if marker < 0 else marker + 5
    start = end.start()
    for place, line in enumerate(reversed(text[first : end.start()].splitlines(keepends=True))):
        match = KEY_LINE.fullmatch(line)
        is_end = place == 0 or start == len(line)  # the last line of a key may be short, and a first one that is cut
        if match is None or (len(match[1]) < 16 and not is_end):
            break
        start -= len(line)
    return Found(start, end.end(), "secret") if KEY_CONTENT.search(text, start, end.start()) else None


def password(text: bytes, at: int) -> tuple[bool, Found | None]:
    """Return whether the ``@`` at `at` ends the user and password of a URL, and the password unless it is made up."""
    before = text[max(0, at - USER_INFO_LENGTH) : at]
    match = USER_INFO.search(before) if b"://" in before else None
    if match is None:
        return False, None
    value = match[1]
    is_secret = len(value) >= 6 and not PLACEHOLDER.search(value)
    return True, Found(at - len(value), at, "secret") if is_secret else None


def assignment(text: bytes, sign: int) -> Found | None:
    """Return the random value that the ``:`` or ``=`` at `sign` assigns to a name of a secret."""
    if not LABEL.search(text[max(0, sign - LABEL_LENGTH) : sign]):
        return None
    quoted = QUOTED.match(text, sign)
    match = quoted or BARE.match(text, sign)
    if match is None or not _looks_random(match[2] if quoted else match[1]):
        return None
    return Found(*match.span(2 if quoted else 1), "secret")


def _looks_random(value: bytes) -> bool:
    """Say whether `value` is no word, name or placeholder: its characters change their class as chance has it.

    Classes are digit, capital, small letter. Of neighbours with a class, two in five must change it where there are
    capitals and small letters (.62 in random base 62, .36 in words joined by capitals), one in five else (.47 in
    hexadecimal, .40 in base 36, .1 in words joined by underscores). Ten characters at least differ, and nine in a row
    are never letters of one class.
    """
    if PLACEHOLDER.search(value) or UUID.fullmatch(value) or len(set(value)) < 10:
        return False
    classes = value.translate(_CLASSES)
    has_both_cases = 2 in classes and 3 in classes
    if b"\2" * 9 in classes or b"\3" * 9 in classes or not (1 in classes or has_both_cases):
        return False
    pairs = [(left, right) for left, right in pairwise(classes) if left and right]
    changes = sum(left != right for left, right in pairs)
    return len(pairs) > 7 and 5 * changes >= (2 if has_both_cases else 1) * len(pairs)
