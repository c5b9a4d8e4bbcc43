"""Words to requests, answers to tables. It asks the backend; it decides nothing.

One file a command. Each holds ``app``, a typer application of one command or of several;
``relight.cli.app`` names it in its table and imports it only when it is called.
"""
