"""What setup.cfg cannot say: the project's page where a package is published.

That page has no folder beside it, so links into the repository are made absolute.  Where the repository is found is
the publisher's to say, at the build: MASKED_BANDITS_URL=https://HOST/PATH python -m build.  Without it a link becomes
the path of its file in the source distribution, which nothing has to be online for.
"""

import os
import re
from pathlib import Path

from setuptools import setup

URL = os.environ.get("MASKED_BANDITS_URL", "").rstrip("/")
RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#|mailto:)([^)\s]+)\)")


def absolute(link: re.Match[str]) -> str:
    """One link of the README, as it reads away from the repository."""
    picture, text, path = link.groups()
    if URL:
        return f"{picture}[{text}]({URL}/{'raw' if picture else 'blob'}/main/{path})"
    return text if picture or text == path else f"{text} ({path})"


setup(
    long_description=RELATIVE.sub(absolute, (Path(__file__).parent / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    project_urls={
        "Source": URL,
        "Documentation": f"{URL}/blob/main/README.md",
        "Changelog": f"{URL}/blob/main/CHANGELOG.md",
        "Security": f"{URL}/blob/main/SECURITY.md",
    }
    if URL
    else {},
)
