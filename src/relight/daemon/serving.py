"""``relight serve``: settings in, everything running, until it is told to stop."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from relight.daemon.clock import now
from relight.daemon.parts import parts_of
from relight.daemon.services import Habits, Service
from relight.daemon.stop_signals import StopSignal, cut_off_late_end
from relight.serve.apps import create_app
from relight.serve.ports import Ports
from relight.serve.servers import run_server
from relight.serve.tokens import keep_token
from relight.settings.records import Settings
from relight.store.stores import Store

LAST_TURN = 4.0
"""Seconds for the turns that are under way at the end; one command of Slurm may take 10."""


class UnusableFolder(Exception):  # noqa: N818 - named by what it says
    """The state folder cannot be made or written: name another in store.path."""


class AlreadyRunning(Exception):  # noqa: N818 - named by what it says
    """Another relight uses the same state folder: stop it, or give this one another."""


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Run until SIGINT or SIGTERM; ``say`` is told, in a sentence each, what is up.

    After the signal the process must end: when it has not within ``LONGEST_STOP``, it is ended
    with the exit code ``CUT_OFF``. When only a turn or a request takes too long, the process ends
    here, by itself and with 0. A signal during the start ends it before it has looked at
    anything.

    Raises:
        SettingsError: a cluster cannot be served.
        UnusableFolder: the state folder cannot be made.
        AlreadyRunning: the state folder is in use.
        TokenUnusable: the file of the token cannot be trusted or written.
        StoreRefused: the database cannot be used.
        CannotListen: the address cannot be used.
        RuleError: a rule of the site is wrong.

    """
    parts = parts_of(settings)
    habits = Habits(rule_directories=settings.rules.directories, last_turn=LAST_TURN)
    os.umask(0o027)  # what is written down about jobs is for relight's own group at most
    folder = Path(settings.store.path)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o750)
    except OSError as error:
        raise UnusableFolder(
            f"the state folder {folder} cannot be made ({error.strerror}): set store.path to a "
            "folder that relight may write"
        ) from error
    with _OnlyOne(folder):
        token = keep_token(folder)
        with (
            StopSignal(cut_off_late_end) as stop,
            Store.open(settings.store.database) as store,
            closing(Service(parts, store, folder, now, habits=habits)) as service,
            run_server(
                # The one controller calls the backend itself: nobody else may speak as one.
                create_app(Ports(records=store, daemon=service.daemon), token, controllers=False),
                settings.serve.host,
                settings.serve.port,
            ) as server,
        ):
            if not stop.has_come:
                service.start()  # only now: an address that is refused must come before any look
                for part in parts:
                    say(_describe(part.name, can_change=part.hands is not None))
                say(f"Listening on {server.url}; who can read {token.path} may ask.")
            stop.wait()
            say("Stopping.")
            service.ask_to_stop()  # turns come to their end while the server does
    if service.is_cut_off or not server.has_ended:
        # The interpreter's own end would stop a thread amid a matcher's C++, which aborts it all.
        os._exit(0)


def _describe(name: str, *, can_change: bool) -> str:
    if can_change:
        return f"Cluster {name}: may act where a policy says so."
    return f"Cluster {name}: monitor mode, nothing is changed."


class _OnlyOne:
    """Holds a lock in the state folder; the system frees it whenever the process ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"

    def __enter__(self) -> None:
        self._file = self._path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read(32).strip() or "unknown"
            self._file.close()
            raise AlreadyRunning(
                f"another relight (pid {holder}) already uses {self._path.parent}: stop it, or "
                "set store.path to another folder"
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def __exit__(self, *_: object) -> None:
        self._file.close()
