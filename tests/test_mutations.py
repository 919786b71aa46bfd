"""The mutants of `mutations` are still lines of the source, and the tests that catch them are still there."""

from __future__ import annotations

import ast

import pytest

from mutations import MUTANTS, ROOT

EACH = pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.what for mutant in MUTANTS])


@EACH
def test_a_mutant_changes_one_line(mutant):
    source = (ROOT / "src" / "evertree" / mutant.file).read_text(encoding="utf-8")
    wrong = mutant.applied(source)
    assert sum(a != b for a, b in zip(source.splitlines(), wrong.splitlines(), strict=True)) == 1
    assert ast.dump(ast.parse(wrong)) != ast.dump(ast.parse(source))


@EACH
def test_a_mutant_has_a_test(mutant):
    file, _, name = mutant.test.partition("::")
    assert f"\ndef {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")
