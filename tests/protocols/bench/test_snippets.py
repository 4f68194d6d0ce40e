"""Commands of pages: how they are read, what is run, and that one that fails is said."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mpc.errors import ConfigError
from protocols.bench import snippets
from protocols.bench.snippets import blocks, commands, main

PAGE = """# A page

```sh
printf 'a b\\n' > said   # what the next reads
python -c "
print(open('said').read())
" \\
    more
```

```text
false
```

```sh long
grep -q 'a b' said
ls DIR
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only one there is."""
    (path := tmp_path / "README.md").write_text(PAGE)
    monkeypatch.setattr(snippets, "ROOT", tmp_path)
    return path


def played(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["snippets", *words])
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_a_command_may_go_on_behind_a_backslash_or_in_quotes(page: Path) -> None:
    first, second, third = blocks(page)
    assert (first.language, first.marks, third.marks) == ("sh", (), ("long",)) and second.language == "text"
    one, two = commands(first.code)
    assert one.startswith("printf") and two.startswith("python -c") and two.endswith("more")
    assert list(commands("# nothing\n\n")) == []
    with pytest.raises(ConfigError, match="ends inside one: echo 'open"):
        list(commands("echo 'open\n"))


def test_a_page_is_run_in_order_in_a_folder_of_its_own(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert played(monkeypatch) == 0
    out, err = capsys.readouterr()
    assert out == "4 commands, 0 failed, 1 left out\n" and not (page.parent / "said").exists()
    assert err.count("well") == 3 and "README.md:15  left out, it wants --data-dir  ls DIR" in err
    assert played(monkeypatch, "--data-dir", str(page.parent)) == 0 and capsys.readouterr().err.count("well") == 4


def test_python_that_takes_long_is_a_script_and_what_takes_hours_is_left_out(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    page.write_text("```python long\nprint(open('no such file'))\n```\n```sh hours\ntrue\n```\n")
    assert played(monkeypatch, "--long") == 1
    out, err = capsys.readouterr()
    assert "1 commands, 1 failed" in out and "FileNotFoundError" in err
    page.write_text(page.read_text().replace("open('no such file')", "1"))
    assert played(monkeypatch) == 0 and "1 commands, 0 failed" in capsys.readouterr().out
    assert played(monkeypatch, "--hours") == 0 and "2 commands, 0 failed" in capsys.readouterr().out


def test_what_fails_is_said(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    page.write_text(PAGE.replace("'a b' said", "'b a' said"))
    assert played(monkeypatch) == 1
    assert "README.md:15  FAILED" in capsys.readouterr().err
    page.write_text("```sh\nfalse | true\n```\n")
    assert played(monkeypatch, str(page)) == 1 and played(monkeypatch, "--long") == 0
    capsys.readouterr()
    assert played(monkeypatch, "other.md") == 2 and "other.md is none of the pages" in capsys.readouterr().err
