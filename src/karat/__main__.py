"""``python -m karat`` is the command ``karat``."""

from karat.cli.main import main

main()
