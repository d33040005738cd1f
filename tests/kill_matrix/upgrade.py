"""A rolling upgrade: servers of an earlier commit and of the present one take turns on
one store while clients read. Nothing may be lost (run.py).

    upgrade.py [--commit COMMIT] [--mixed] [--short] [--seed N] [--place DIRECTORY]
               [MATRIX...]

Without a matrix, the checks of mixed.py run first; with --mixed, nothing else runs.

The earlier commit, EARLIER if none is named, is built in build/earlier. Without the
history of git, or without that commit in it, one line says so and nothing is tried.
"""
import argparse
import os
import subprocess
import sys

import mixed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLACE = f"{ROOT}/build/earlier"
# The first commit of which all formats of stores are kept.
EARLIER = "6300693e"


def skip(reason):
    print(f"rolling upgrade: skipped: {reason}")
    sys.exit(0)


def find_commit(name):
    """Returns the whole name of the commit."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--verify", "-q", f"{name}^{{commit}}"], cwd=ROOT,
            capture_output=True, text=True)
    except FileNotFoundError:
        skip("git is not installed")
    if found.returncode:
        skip(f"commit {name} is not in the history of this tree")
    return found.stdout.strip()


def build(commit):
    """Returns the directory of the earlier programs."""
    tree = f"{PLACE}/{commit}"
    if not os.path.isdir(tree):
        os.makedirs(f"{tree}.new", exist_ok=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True,
                                 stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", f"{tree}.new"], input=archive.stdout,
                       check=True)
        os.rename(f"{tree}.new", tree)
    for command in (
            ["cmake", "--preset", "release"],
            ["cmake", "--build", "--preset", "release", "--target", "kill_server"]):
        subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)
    return f"{tree}/build/release/tests/kill_matrix"


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--commit", default=EARLIER)
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--place", default=f"{ROOT}/build/release/tests/kill_matrix")
    options, others = parser.parse_known_args()
    earlier = build(find_commit(options.commit))
    failed = 0
    if options.mixed or not any("upgrade-" in word for word in others):
        failed = mixed.check(earlier, options.place)
    if options.mixed:
        return int(failed > 0)
    run = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
    command = [sys.executable, "-B", run, "--earlier", earlier, "--place",
               options.place, *others]
    return subprocess.run(command).returncode or int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
