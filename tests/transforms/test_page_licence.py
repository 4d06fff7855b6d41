"""The licence a page declares for itself."""

from __future__ import annotations

import pytest

from transforms.page_licence import page_licence

CC = "https://creativecommons.org/"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (f'<a rel="license" href="{CC}licenses/by/4.0/">', "CC-BY-4.0"),
        ("<A HREF='http://www.creativecommons.org/licenses/by-nc-sa/2.0' REL='nofollow LICENSE'>", "CC-BY-NC-SA-2.0"),
        (f"<link href={CC}licenses/by-nd/3.0/ rel=license>", "CC-BY-ND-3.0"),
        (f'<a rel="license" href="{CC}licenses/by-nd-nc/1.0/">', "CC-BY-NC-ND-1.0"),
        (f'<a rel="license" href="{CC}licenses/by-sa/3.0/de/deed.de">', "CC-BY-SA-3.0-DE"),
        (f'<a rel="license" href="{CC}licenses/by/2.5/es/">', "LicenseRef-CC-BY-2.5-ES"),
        (f'<a rel="license" href="{CC}licenses/by/3.0/igo">', "CC-BY-3.0-IGO"),
        (f'<a rel="license" href="{CC}licenses/by/4.0/deed.en">', "CC-BY-4.0"),
        (f'<a rel="license" href="{CC}licenses/by/">', "LicenseRef-CC-BY"),
        (f'<a rel="license" href="{CC}publicdomain/zero/1.0/">', "CC0-1.0"),
        (f'<a rel="license" href="{CC}publicdomain/mark/1.0/">', "CC-PDM-1.0"),
        (f'<a rel="license" href="{CC}licenses/publicdomain/">', "CC-PDDC"),
        (f'<a rel="license" href="{CC}licenses/by/4.0/">' * 2, "CC-BY-4.0"),
        (f'<a rel="license" href="{CC}licenses/by/4.0/"><a rel=license href="{CC}licenses/by-sa/4.0/">', None),
        (f'<a href="{CC}licenses/by/4.0/">', None),
        (f'<a rel="sublicense" href="{CC}licenses/by/4.0/">', None),
        (f'<img rel="license" src="{CC}licenses/by/4.0/">', None),
        (f'<a rel="license">{CC}licenses/by/4.0/</a>', None),
        (f'<a rel="license" href="{CC}licenses/GPL/2.0/">', None),
        ('<a rel="license" href="/terms">', None),
        (f"{CC}licenses/by/4.0/", None),
        ("", None),
        (f"creativecommons.org/licenses/by/4.0 {'<' * 9000}", None),
    ],
)
def test_declared_licences_become_spdx_identifiers(page: str, expected: str | None) -> None:
    assert page_licence(page.encode()) == expected
