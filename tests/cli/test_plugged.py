"""A package that is not there: which command, and how to get it."""

from __future__ import annotations

import pytest

from commands import Run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve"], "quoth serve is not installed; get it with: pip install 'quoth[serve]'"),
        (["convert", "-o", "m"], "quoth convert is not installed; get it with: pip install 'quoth[eval]'"),
        (["list", "s3://a/b"], "and --ray, are not installed; get them with: pip install 'quoth[ray]'"),
        (["index", __file__, "--format", "text", "-o", "c", "--ray"], "URLs of corpora, and --ray, are not installed"),
    ],
)
def test_a_package_that_is_not_plugged_in_is_told(
    arguments: list[str], said: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.cli.plugged.entry_points", lambda **_: [])
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
