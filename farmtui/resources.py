"""Folders that come with farm: `styles/` and `workflows/`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def resource_folder(name: str) -> Path:
    """The folder `name` ("styles" or "workflows") that comes with farm.

    The wheel carries it inside the package; in a checkout, and so in an editable install, it stands
    beside the package.

    Raises:
        FileNotFoundError: neither is there: the installation is damaged.
    """
    package = Path(str(files("farmtui")))
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"{name}/ is missing from farm's installation in {package}: install it again")
