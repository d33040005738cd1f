"""Explains why the extension module cannot be loaded, and what to install instead.

The wheel contains libsegue. The libraries that libsegue needs come from the system. When
some are missing, the dynamic linker names only the first. This module asks the linker for
all of them and lists the Debian packages to install. A free-threaded Python cannot load
the module: 3.13 tries to, and fails with a SystemError.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path

__all__ = ["check", "explain"]

# Maps the beginning of a library's file name to the Debian package of the library. The
# number after ".so." and the package's name depend on the version of Debian.
_PACKAGES = {
    "libwebsockets.so": "libwebsockets17",
    "libev.so": "libev4",
    "libcurl.so": "libcurl4",
    "libsqlite3.so": "libsqlite3-0",
    "libhiredis.so": "libhiredis0.14",
    "libhiredis_ssl.so": "libhiredis0.14",
    "libpq.so": "libpq5",
    "libssl.so": "libssl3",
    "libcrypto.so": "libssl3",
}
# Always needed: libwebsockets loads the library of this package only when a server begins
# to listen, so the linker does not report a missing one.
_ALWAYS = "libwebsockets-evlib-ev"
FREE_THREADED = (
    "segue needs a Python with the global interpreter lock (GIL), and this Python is "
    "free-threaded: use the usual build of the same version"
)
_MISSING = re.compile(r"(lib[\w+.-]+\.so[\w.]*)(?: => not found|: cannot open shared)")


def check() -> None:
    """Imports the extension module.

    Raises:
        ImportError: The module cannot be loaded. If system libraries are missing, the
            message names the packages to install. If this Python is free-threaded, the
            message says that Segue needs another one.
    """
    if "t" in sys.abiflags:
        raise ImportError(FREE_THREADED)
    try:
        importlib.import_module("segue._segue")
    except ImportError as error:
        missing = _MISSING.findall(str(error))
        if not missing:
            raise
        raise ImportError(explain([*missing, *_all_missing()])) from error


def explain(libraries: list[str]) -> str:
    """Returns the error message for a system that lacks these libraries (file names)."""
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
    """Returns the file names of the libraries that the dynamic linker does not find."""
    import subprocess  # imported here, because most programs never need subprocess

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
