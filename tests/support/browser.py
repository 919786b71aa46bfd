"""A Chromium of our own, without a window or a network, for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: Nothing may be asked of any server: neither by pages, nor by the browser itself.
_OPTIONS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, or a reason why there is none: on CI a failure, elsewhere a skip."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        reason = "Chromium is not installed: apt install chromium"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Its sandbox refuses to be run by root; the pages are our own. The profile is a new and empty one.
        browser = playwright.chromium.launch(executable_path=program, args=_OPTIONS, chromium_sandbox=False)
        try:
            yield browser
        finally:
            browser.close()
