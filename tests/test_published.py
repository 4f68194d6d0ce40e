"""A wheel and an sdist that could be published: what is in them, and a page whose links lead somewhere."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ["masked_bandits", "mpc", "offline", "bandits", "protocols", "docs", "examples", "scripts", "tests/bandits"]
BUILD = """
import sys
from setuptools import build_meta
place = sys.argv[1]  # setuptools makes argv its own
print(build_meta.build_wheel(place), build_meta.build_sdist(place))
"""


def built(place: Path, url: str) -> tuple[set[str], set[str], Message]:
    """Names in the wheel and in the sdist, and the wheel's metadata.  url: where the publisher says the project is."""
    source, made = place / "source", place / "made"
    made.mkdir()
    for part in PARTS:
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file() and path.name not in (".git", ".gitignore"):
            shutil.copy(path, source)
    environment = {**os.environ, "MASKED_BANDITS_URL": url}
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(made)],
        capture_output=True,
        text=True,
        check=False,
        cwd=source,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    wheel, sdist = (made / name for name in done.stdout.split()[-2:])
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        page = email.message_from_bytes(file.read(metadata))
    with tarfile.open(sdist) as file:
        return names, {name.partition("/")[2] for name in file.getnames()}, page


@pytest.mark.parametrize("url", ["", "https://example.org/masked-bandits"])
def test_a_wheel_and_an_sdist_have_what_they_should(url: str, tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="68")
    wheel, sdist, page = built(tmp_path, url)
    assert {"masked_bandits/__init__.py", "masked_bandits/py.typed", "mpc/py.typed"} <= wheel
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel)
    tops = {name.partition("/")[0] for name in wheel if ".dist-info" not in name}
    assert tops == {"masked_bandits", "mpc", "offline", "bandits", "protocols"}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "docs/ppcb.md", "docs/overview.svg", "setup.cfg"}
    assert wanted | {"scripts/test", "examples/auction.py", "constraints.txt"} <= sdist
    text = page.get_payload()
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert all(target.startswith(("https://", "#")) for target in targets), targets
    urls = page.get_all("Project-URL") or []
    if url:
        assert f"Source, {url}" in urls and f"{url}/blob/main/docs/ppcb.md" in targets
    else:
        assert not urls and "](docs/" not in text and "docs/ppcb.md" in text
