"""Runs the command as ``python -m segue.cli``, where its script is not on the PATH."""

from segue.cli import main

if __name__ == "__main__":
    main()
