"""One text for each way to be refused, and what is then said: `<name>.lift` and `<name>.txt`."""

from pathlib import Path

import pytest

from liftpy.errors import LiftError
from liftpy.semantics.sizes import parse

TEXTS = sorted(Path(__file__).parent.glob("*.lift"))


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_a_bad_text_is_refused_with_its_message(text, request):
    with pytest.raises(LiftError) as refusal:  # noqa: PT011  the message is compared below
        parse(text.read_text(encoding="utf-8"))
    said = f"{type(refusal.value).__name__}: {refusal.value}\n"
    expected = text.with_suffix(".txt")
    if request.config.getoption("--update-golden"):
        expected.write_text(said, encoding="utf-8")
    assert said == expected.read_text(encoding="utf-8")


def test_every_message_has_its_text():
    assert {t.stem for t in TEXTS} == {t.stem for t in Path(__file__).parent.glob("*.txt")}
