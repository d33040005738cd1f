"""``python -m segue.cli``: the command where its script is not on the PATH."""

from segue.cli import main

if __name__ == "__main__":
    main()
