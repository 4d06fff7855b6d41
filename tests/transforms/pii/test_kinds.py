"""What is personal data of each kind and what only looks like it: one line per rule that the modules state."""

from __future__ import annotations

import pytest

from transforms.pii import mask_excerpt

FOUND = {
    "write to jane.doe+news@mail.example.co.uk.": "write to <email>.",
    "mailto:a_b%c@example.org?subject=x": "mailto:<email>?subject=x",
    "https://example.org/?to=jane@example.org&x=1": "https://example.org/?to=<email>&x=1",
    "<jane@example.org>": "<<email>>",
    "o'brien@example.ie": "o'<email>",
    "请联系jane@example.cn。": "请联系<email>。",
    "jane@xn--bcher-kva.example, joe@mail.xn--p1ai": "<email>, <email>",
    "jane@example.com--next": "<email>--next",
    "a" * 70 + "@example.org": "a" * 6 + "<email>",
    "jane@example.org(home)": "<email>(home)",
    "a@b.org@c.org": "<email>",
    "93.184.216.34": "<ip>",
    "(93.184.216.34)": "(<ip>)",
    "host 93.184.216.34.": "host <ip>.",
    "http://8.8.8.8:80/path and 8.8.8.8/24": "http://<ip>:80/path and <ip>/24",
    "?ip=8.8.8.8&x": "?ip=<ip>&x",
    "root@8.8.8.8": "root@<ip>",
    "地址93.184.216.34的": "地址<ip>的",
    "::ffff:93.184.216.34": "::ffff:<ip>",
    "[2a00:1450:4001:81b::200e]:443": "[<ip>]:443",
    "2a00:1450:4001:081b:0000:0000:0000:200E": "<ip>",
    "from 2a00:1450::1: reply": "from <ip>: reply",
    "addr:2a00:1450::1.": "addr:<ip>.",
    "2a00:1450::93.184.216.34": "<ip>",
    "jane@example.org93.184.216.34": "<email><ip>",
    "2222:93.184.216.34:22": "2222:<ip>:22",
    "+49 (0)30 1234567, tel:+4930123456": "<phone>, tel:<phone>",
    "(+49) 30 1234567; +1-202-555-0143 x12": "<phone>; <phone>",
    "+1 202 555 0143 24 hours": "<phone> 24 hours",
    "0049 30 1234567": "<phone>",
    "202-555-0143,303-555-0188, LA 71129 1-800-719-4605": "<phone>,<phone>, LA 71129 <phone>",
    "(202) 555-0143, 202-555-0143 303.555.0188": "<phone>, <phone> <phone>",
    "030 1234567, 0171/1234567, (020) 7946 0958, 02 123 45 67": "<phone>, <phone>, <phone>, <phone>",
    "01 23 45 67 89 or 03-1234-5678": "<phone> or <phone>",
    "(11) 91234-5678, 8 (495) 123-45-67, 138 1234 5678": "<phone>, <phone>, <phone>",
    "Tel: 612 34 56 78; fax no. 5550143; call us at 555-0143": "Tel: <phone>; fax no. <phone>; call us at <phone>",
    "тел. 123-45-67, 电话：13812345678": "тел. <phone>, 电话：<phone>",
    "+49\u00a030\u00a01234567": "<phone>",
    "Visa 4111 1111 1111 1111 12/27": "Visa <card> 12/27",
    "3782-822463-10005, 5555555555554444; 4222 222 222 222": "<card>, <card>; <card>",
    "IBAN DE89 3704 0044 0532 0130 00, GB82WEST12345698765432": "IBAN <iban>, <iban>",
    "id AKIAIOSFODNN7ABCDEFG": "id <secret>",
    "ghp_" + "aB3" * 12: "<secret>",
    "xoxb-" + "1234567890-" * 2 + "abcdefgh": "<secret>",
    "sk_live_" + "aB3d" * 6 + " AIza" + "aB3d_" * 7: "<secret> <secret>",
    "postgres://app:hunter22x@db.example.com/x": "postgres://app:<secret>@db.example.com/x",
    'api_key = "aB3dE5gH7jK9mN1pQ3rS"': 'api_key = "<secret>"',
    "export DB_PASSWORD=aB3dE5gH7jK9mN1pQ3rS\n": "export DB_PASSWORD=<secret>\n",
    '{"secret": "0f3a9c2b7d1e4f8a6b5c0d9e2f1a3b4c"}': '{"secret": "<secret>"}',
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop-_123": "<secret>",
    "-----BEGIN RSA PRIVATE KEY-----\n" + "aB3d" * 16 + "\n-----END RSA PRIVATE KEY-----\nx": "<secret>\nx",
    "-----BEGIN PRIVATE KEY-----\n" + "aB3d" * 16 + "\ncut short": "<secret>\ncut short",
    "aB3d\n" + "aB3d" * 16 + "\n-----END PRIVATE KEY-----\nx": "<secret>\nx",
    "see\n" + "aB3d" * 16 + "\naB==\n-----END PRIVATE KEY-----": "<secret>",
    "\nsee\n" + "aB3d" * 16 + "\naB==\n-----END PRIVATE KEY-----": "\nsee\n<secret>",
}

LEFT = [
    "icon@2x.png and tile@3x.webp",
    "package@1.2.3-beta.rc",
    "a@b, @user, foo@, foo@bar, foo.@example.org, jane@1.2",
    "(a@b.transpose(0, 1)) + x@w.to(device)",
    "12.34.56.789, 1.2.3.4.5, 0.1.2.3.4, 256.8.8.8, 093.8.8.8",
    "v91.2.3.4, tool-91.2.3.4, 91.2.3.4-beta, 91.2.3.4a, lib_91.2.3.4",
    "version 91.2.3.4, Version: 91.2.3.4, ver. 91.2.3.4, release 91.2.3.4, Section 91.2.3.4, § 91.2.3.4",
    "Sections 91.2.3.4, 91.2.3.5 and 91.2.3.6",
    "Chrome/120.0.0.0 Safari/9.9.9.9, Chrome 120.0.0.1",
    "tool==91.2.3.4, tool >= 91.2.3.4, ^91.2.3.4, ~91.2.3.4, ~=91.2.3.4",
    "zlib 1.2.3.4 and 3.2.1.4 Results, Lucee 5.3.2.77",
    "€ 91.123.123.123 or 91.123.123.123 euros",
    "10.1.2.3 172.16.0.1 192.168.1.1 127.0.0.1 169.254.1.1 100.64.0.1 0.0.0.0 255.255.255.0",
    "192.0.2.1 198.51.100.7 203.0.113.9 198.18.0.1 192.0.0.9 224.0.0.251",
    "::1 fe80::1 fc00::1 2001:db8::1 3fff::1 ff02::1 ::",
    "12:30:45 00:1a:2b:3c:4d:5e 20:01:48:60:48:60:88:88 std::vector a::b dead::beef, 4 Jan 2004::",
    "2001:4860:zz 2a00:1450::1xyz 2a00::1::2 2a00:1:2:3:4:5:6:7:8 x2a00:1450::1 1:2a00:1450::1",
    "93.184.216.34-93.184.216.39",
    "2024-01-31 12:30:45, 31.01.2024 12:30, 01-02-2024 10, 01 02 2024 1030, 1999-2005",
    "ISBN 978-3-16-148410-0, ISBN-10 0-306-40615-2, ISSN 0378-5955, 978 3 16 148410 0",
    "10.1038/s41586-020-2649-2, doi:10.1016/j.cell.2020.01.020",
    "48.858370, 2.294481 and 012.3456789",
    "$1,234,567.00, 1 234 567 €, +12 345 678 euros, +20 000 000",
    "01 02 03 04 05, 012 013 023 123, 11 12 13 14 15 16",
    "order 202-555-0143, part no. 202-555-0143, 211-555-0143, 202-155-0143",
    "x+12345678901, 1e+10, +0100, 123-45-6789, 12345-6789, https://example.org/030-1234567.html",
    "0301234567 and 2025550143",
    "Phone 2024-01-31, tel 1999-2005, phone 12",
    "4111 1111 1111 1112, 4111111111111112, 1111 2222 3333 4444, order no. 4111111111111111",
    "0.4111111111111111, 4.111111111111111, x4111111111111111, 41111111111111111111, 4111 1111 1111 1111 1111",
    "0000000000000000, EAN 4006381333931",
    "DE88 3704 0044 0532 0130 00, DE89 3704 0044 0532 0130 001, XX89370400440532013000, de89370400440532013000",
    "AKIAiosfodnn7abcdefg, ghp_short, sk-fading-circle, task-force-one-two-three, disk_usage_statistics",
    'api_key = "your_api_key_goes_here_2", token = "xxxxxxxxxxxxxxxxxxxx", secret: ${SECRET_FROM_VAULT_12}',
    "token = getTokenFromStore2(request), password_hash = '0f3a9c2b7d1e4f8a6b5c0d9e2f1a3b4c'",
    'client_key = "550e8400-e29b-41d4-a716-446655440000", secret = "correct-horse-battery-staple"',
    "postgres://user:password@host/x, postgres://user:${PW}@host/x",
    "-----BEGIN PRIVATE KEY----- … -----END PRIVATE KEY-----, -----BEGIN PUBLIC KEY-----\n" + "aB3d" * 16,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0, eyJmb28iOiJiYXIifQ.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop",
]


@pytest.mark.parametrize("text", FOUND)
def test_mask_personal_data_is_replaced_by_constants(text: str) -> None:
    assert mask_excerpt(text) == FOUND[text]


@pytest.mark.parametrize("text", LEFT)
def test_mask_false_friends_stay(text: str) -> None:
    assert mask_excerpt(text) == text
