"""What only some systems have: locks, owners, groups and limits of processes.

Elsewhere the app is written for POSIX. On Windows files lie in the user's own folder, whose list
of rights keeps others out, and a process has no limits of its own; what cannot do without them, the
reading of strangers' tokenizers, is refused there (`explorer.text.published.process`).
"""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

IS_POSIX = sys.platform != "win32"
FILES = 8_192
"""That a process of Windows may have open, as far as its C library goes."""

if sys.platform == "win32":
    import msvcrt

    INFINITY = -1
    KILLED: tuple[int, ...] = ()
    """Signals that end a process which takes too much."""
    OWN_GROUP = subprocess.CREATE_NEW_PROCESS_GROUP
    """Ctrl-C is the server's, and not that of the processes it has started."""

    def lock(handle: int, *, waits: bool = False, shared: bool = False) -> bool:
        """Lock an open file until it is closed; whether it was free. Shared locks are as others."""
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError:
                if not waits:
                    return False
                time.sleep(0.02)
            else:
                return True

    def replace(new: Path, old: Path) -> None:
        """Put one file in the place of another, which somebody may be reading for a moment."""
        for _ in range(100):
            try:
                new.replace(old)
            except PermissionError:
                time.sleep(0.01)
            else:
                return
        new.replace(old)

    def is_mine(found: os.stat_result) -> bool:
        return True

    def is_mine_alone(found: os.stat_result) -> bool:
        return True

    def end_group(process: subprocess.Popen[bytes], *, at_once: bool = False) -> None:
        """End it; those that it has started see that it is gone."""
        process.kill()

    def end_own_group() -> None:
        os._exit(1)

    def be_nice(by: int) -> None:
        """Its workers have the priority of others."""

    def limits(what: str) -> tuple[int, int]:
        """The soft and the hard limit: nothing is limited."""
        return FILES, FILES

    def limit(**most: int) -> None:
        """Nothing can be."""

else:
    import fcntl
    import resource

    INFINITY = resource.RLIM_INFINITY
    KILLED: tuple[int, ...] = (signal.SIGXCPU, signal.SIGKILL)
    """Signals that end a process which takes too much."""
    OWN_GROUP = 0
    """`start_new_session` is what makes one."""

    def lock(handle: int, *, waits: bool = False, shared: bool = False) -> bool:
        """Lock an open file until it is closed; whether it was free."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(handle, kind if waits else kind | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def replace(new: Path, old: Path) -> None:
        """Put one file in the place of another."""
        new.replace(old)

    def is_mine(found: os.stat_result) -> bool:
        """Whether the file is that of this process's user."""
        return found.st_uid == os.getuid()

    def is_mine_alone(found: os.stat_result) -> bool:
        """Whether nobody but this process's user reads or writes the file."""
        return is_mine(found) and stat.S_IMODE(found.st_mode) & 0o177 == 0

    def end_group(process: subprocess.Popen[bytes], *, at_once: bool = False) -> None:
        """End it and all that it has started."""
        os.killpg(process.pid, signal.SIGKILL if at_once else signal.SIGTERM)

    def end_own_group() -> None:
        """End this process and all of its group."""
        os.killpg(os.getpgid(0), signal.SIGTERM)

    def be_nice(by: int) -> None:
        """Less of the processor than others."""
        os.nice(by)

    def limits(what: str) -> tuple[int, int]:
        """The soft and the hard limit of this process."""
        return resource.getrlimit(getattr(resource, f"RLIMIT_{what}"))

    def limit(**most: int) -> None:
        """Set the soft limits of this process, each by its name."""
        for what, soft in most.items():
            hard = limits(what)[1]
            soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
            resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (soft, hard))


ALWAYS_PASSED = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


def child_environment(*also: str) -> dict[str, str]:
    """The environment of a process that the app starts: what it needs, and no secret.

    The server's own has its token, the key that signs forms, and secrets of other programs: a
    hostile file that takes over a child process finds none of them.
    """
    return {name: os.environ[name] for name in (*ALWAYS_PASSED, *also) if name in os.environ}
