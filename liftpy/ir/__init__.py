"""The language: naturals, types, conditions and expressions, with a parser and a printer."""
