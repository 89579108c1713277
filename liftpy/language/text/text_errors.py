"""Refusals of texts that are not made of tokens: too long, nested too deeply, stray characters."""

from __future__ import annotations

import re

from liftpy.errors import SyntaxRefused
from liftpy.ir.types import BOOL, SCALARS
from liftpy.ir.walk import DEPTH
from liftpy.source.spans import Source, Span

#: The suffixes of numbers.
NUMBERS = tuple(name for name in SCALARS if name != BOOL.name)
#: The most tokens of a text, and the most letters of a word. They bound the time of parsing, which
#: is proportional to them.
MOST_WORDS = 50_000
LONGEST_WORD = 200
#: Tokens: words, names in backquotes, signs; not blanks and comments.
COUNTED = re.compile(r"\w+|`[^`\n]*`?|[^\w\s#]|(?P<skipped>(?:\s+|#[^\n]*)+)")
#: Hints for symbols of other languages.
HABITS = {
    ">>": "pipeline steps are joined by `|>` in the text form; `shiftRight(a, n)` shifts bits",
    "<<": "`shiftLeft(a, n)` shifts the bits of an integer",
    "^": "write `bitXor(a, b)` for the bits of integers, and a power as a product",
    "->": "a function is written `x => body`",
    "\\": "a function is written `x => body`",
    "//": "a comment begins with `#`",
    "/*": "a comment begins with `#`",
    "lambda": "a function is written `x => body`",
    "&&": "write `a and b`",
    "||": "write `a or b`",
    "!": "write `not a`",
    "**": "write the power as a product",
    "&": "write `a and b` for truth values, `bitAnd(a, b)` for the bits of integers",
    "|": "write `a or b` for truth values, `bitOr(a, b)` for the bits of integers",
    "~": "write `not a` for truth values, `bitNot(a)` for the bits of integers",
    "?": "`select(condition, then, otherwise)` chooses",
}
SIGNS = "the symbols of the language are + - * / // % /^ < <= == != > >= |> => = ( ) [ ] , : . ^"


def refuse_long(source: Source) -> None:
    """Raises SyntaxRefused for a text with too many tokens, or with a word of too many letters."""
    words = (found for found in COUNTED.finditer(source.text) if found.lastgroup is None)
    for count, word in enumerate(words, 1):
        start, end = word.span()
        if end - start > LONGEST_WORD:
            raise source.refusal(
                SyntaxRefused,
                f"a word of {end - start} letters is too long",
                Span(start, end),
                f"a name or a number has at most {LONGEST_WORD}",
                "use a shorter name; write a long number with an exponent, such as 1e30",
            )
        if count > MOST_WORDS:
            raise source.refusal(
                SyntaxRefused,
                f"the text has more than {MOST_WORDS} tokens",
                Span(start, end),
                "no driver could compile a program of that length",
                "express repetition with `map`, `reduce`, `iterate` or `fun`",
            )


def deep(source: Source, at: int) -> SyntaxRefused:
    """The refusal of a text that is nested too deeply at an offset."""
    return source.refusal(
        SyntaxRefused,
        f"the text is nested more than {DEPTH} levels deep",
        Span(at, at + 1),
        "each parenthesis, operator, pipeline step and argument is a level",
        "name parts with `let` or `fun`, or use a reduction for a long sum",
    )


def stray(source: Source, at: int) -> SyntaxRefused:
    """The refusal of characters with which no token begins."""
    found = source.text[at]
    if found.isalnum():
        end = at
        while end < len(source.text) and (source.text[end].isalnum() or source.text[end] == "_"):
            end += 1
        return source.refusal(
            SyntaxRefused,
            f"`{source.text[at:end]}` is neither a number nor a name",
            Span(at, end),
            f"a number ends with a digit or with {', '.join(NUMBERS[:-1])} or {NUMBERS[-1]}; "
            "a name begins with a letter",
        )
    hint = HABITS.get(source.text[at : at + 2]) or HABITS.get(found)
    return source.refusal(
        SyntaxRefused, f"`{found}` has no meaning here", Span(at, at + 1), hint or SIGNS
    )
