"""The error for a user whose system lacks a library, or whose Python has no GIL."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path

import segue
from segue import _packages


def loaded(name: str) -> Path:
    """Returns the file of a library that this process has loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if name in Path(path).name:
            return Path(path)
    raise AssertionError(f"{name} is not loaded")


def copy_package(directory: Path, wants: dict[bytes, bytes]) -> None:
    """Copies the package and changes the names of the libraries that it needs."""
    shutil.copytree(
        Path(segue.__file__).parent,
        directory / "segue",
        ignore=shutil.ignore_patterns("*.so*", "__pycache__"),
    )
    shutil.copy(loaded("_segue."), directory / "segue")
    library = loaded("libsegue.so").read_bytes()
    for old, new in wants.items():
        assert len(old) == len(new) and library.count(old) == 1
        library = library.replace(old, new)
    (directory / "segue" / loaded("libsegue.so").name).write_bytes(library)


def run_import(directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-B", "-c", "import segue; print(segue.__file__)"],
        cwd=directory,
        env={"LD_LIBRARY_PATH": str(directory / "segue"), "PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == 0:
        assert done.stdout.strip().startswith(str(directory))
        return ""
    return done.stderr.strip().splitlines()[-1]


def test_all_that_is_missing_is_named_with_its_packages(tmp_path: Path) -> None:
    copy_package(
        tmp_path,
        {b"\0libev.so.4\0": b"\0libev.so.9\0", b"\0libssl.so.3\0": b"\0libssl.so.9\0"},
    )
    assert run_import(tmp_path) == (
        "ImportError: segue needs system libraries that are not installed: "
        "libev.so.9, libssl.so.9. On Debian 12: apt-get install libev4 libssl3"
    )


def test_a_library_that_we_do_not_know_is_named_too(tmp_path: Path) -> None:
    copy_package(tmp_path, {b"\0libev.so.4\0": b"\0libno.so.4\0"})
    assert "(and the package of libno.so.4)" in run_import(tmp_path)


def test_a_free_threaded_python_is_refused(tmp_path: Path) -> None:
    """Before it loads the module, which a real one tries to."""
    copy_package(tmp_path, {})
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.abiflags = 't'\n")
    said = run_import(tmp_path)
    assert said == f"ImportError: {_packages.FREE_THREADED}"


def test_the_copy_can_be_imported(tmp_path: Path) -> None:
    """Without this check the tests above could see another failure."""
    copy_package(tmp_path, {})
    assert run_import(tmp_path) == ""


def test_every_library_of_ours_has_a_package() -> None:
    listed = subprocess.run(
        ["ldd", str(loaded("libsegue.so"))], capture_output=True, text=True, check=True
    ).stdout
    direct = {
        "libwebsockets",
        "libev",
        "libsqlite3",
        "libhiredis",
        "libssl",
        "libcrypto",
    }
    names = [line.split()[0] for line in listed.splitlines()]
    ours = [name for name in names if name.partition(".so")[0] in direct]
    assert len(ours) == len(direct)
    late = ["libcurl.so.4", "libpq.so.5"]  # loaded when they are first needed
    assert "the package of" not in _packages.explain([*ours, *late])
    assert "libwebsockets-evlib-ev" in _packages.explain(ours)


def test_the_guide_in_the_metadata_has_no_links_that_lead_nowhere() -> None:
    """An index shows it, where no file of the tree is beside it."""
    guide = str(importlib.metadata.metadata("segue-mcp").get_payload())
    assert guide.startswith("# Segue for Python")
    links = re.findall(r"\]\(([^)]*)\)", guide)
    assert links
    assert [one for one in links if not one.startswith(("#", "https://"))] == []
    assert "segue.h (`source/core/include/segue/segue.h` in the source" in guide
