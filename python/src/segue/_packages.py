"""What to tell somebody whose system lacks a library that ours needs.

The wheel carries libsegue; the libraries below it come from the system. When one is not
there, the dynamic linker names the first it misses. This module asks it for all of them,
and says which Debian packages to install.
"""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path

__all__ = ["check", "explain"]

# By the beginning of the library's file name; the number behind .so. differs with the
# distribution's age, and with it the package's name.
_PACKAGES = {
    "libwebsockets.so": "libwebsockets17",
    "libev.so": "libev4",
    "libcurl.so": "libcurl4",
    "libsqlite3.so": "libsqlite3-0",
    "libhiredis.so": "libhiredis0.14",
    "libhiredis_ssl.so": "libhiredis0.14",
    "libssl.so": "libssl3",
    "libcrypto.so": "libssl3",
}
# Loaded by libwebsockets when a server begins to listen, so the linker does not name it.
_ALWAYS = "libwebsockets-evlib-ev"
_MISSING = re.compile(r"(lib[\w+.-]+\.so[\w.]*)(?: => not found|: cannot open shared)")


def check() -> None:
    """Imports the extension module.

    Raises:
        ImportError: It cannot be loaded. When that is for want of system libraries, the
            message names the packages to install.
    """
    try:
        importlib.import_module("segue._segue")
    except ImportError as error:
        missing = _MISSING.findall(str(error))
        if not missing:
            raise
        raise ImportError(explain([*missing, *_all_missing()])) from error


def explain(libraries: list[str]) -> str:
    """The message for somebody whose system lacks these libraries (file names)."""
    names = sorted(set(libraries))
    packages = []
    for name in names:
        stem = name.partition(".so")[0] + ".so"
        packages.append(_PACKAGES.get(stem, f"the package of {name}"))
    if any("libwebsockets" in name for name in packages):
        packages.append(_ALWAYS)
    install = " ".join(sorted({name for name in packages if " " not in name}))
    other = ", ".join(sorted({name for name in packages if " " in name}))
    text = f"segue needs system libraries that are not installed: {', '.join(names)}."
    if install:
        text += f" On Debian 12: apt-get install {install}"
    return text + (f" (and {other})" if other else "")


def _all_missing() -> list[str]:
    """What the dynamic linker does not find for the library beside this file."""
    import subprocess  # not needed by those who have everything

    missing: list[str] = []
    for library in sorted(Path(__file__).parent.glob("libsegue.so.*")):
        environment = {**os.environ, "LC_ALL": "C"}
        try:
            asked = subprocess.run(
                ["ldd", str(library)],
                capture_output=True,
                text=True,
                timeout=10,
                env=environment,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        missing += _MISSING.findall(asked.stdout)
    return missing
