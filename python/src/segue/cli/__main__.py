"""Runs the command as ``python -m segue.cli``, for systems where the script ``segue`` is
not on the PATH.
"""

from segue.cli import main

if __name__ == "__main__":
    main()
