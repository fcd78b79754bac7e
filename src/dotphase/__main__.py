"""``python -m dotphase`` is the command line."""

from dotphase.cli.main import main

main()
