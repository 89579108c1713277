"""The language: naturals, types, conditions, expressions, and their text's parser and printer."""
