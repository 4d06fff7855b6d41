"""The generated cases of personal data: bounds hold, and the card beside the code is current."""

from __future__ import annotations

from benchmarks.pii_cases import SEED, cases, checks, evaluate
from benchmarks.pii_data import Draw, card_number, iban_of, luhn_digit
from transforms.pii.measured import CARD, card_text, measured


def test_card_numbers_of_an_issuer_example_pass() -> None:
    assert luhn_digit("411111111111111") == "1" and luhn_digit("37828224631000") == "5"
    assert len(card_number(Draw(1))) in (14, 15, 16, 19)


def test_ibans_made_have_check_digits_of_their_own() -> None:
    written = iban_of(Draw(2))
    assert int("".join(str(int(c, 36)) for c in written[4:] + written[:4])) % 97 == 1


def test_checks_all_hold() -> None:
    assert [f"{name}: {value}" for name, (value, _, holds) in checks().items() if not holds] == []


def test_card_is_what_the_present_code_gives() -> None:
    made = cases()
    counts, _ = evaluate(made)
    assert CARD.read_text("utf-8") == card_text(SEED, len(made), counts), "python -m benchmarks.pii_cases --write"
    assert measured() == counts
