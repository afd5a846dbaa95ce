"""Where POSIX and Windows differ: locks, owners, groups and limits of processes.

On Windows, files are in the user's own folder, whose access rights keep others out, and a process
has no resource limits. Reading strangers' tokenizers needs such limits, so it is refused there
(`explorer.text.published.process`).
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
"""Files that a Windows process may have open, by its C library."""

if sys.platform == "win32":
    import msvcrt

    INFINITY = -1
    KILLED: tuple[int, ...] = ()
    """Signals that end a process which exceeds a limit."""
    OWN_GROUP = subprocess.CREATE_NEW_PROCESS_GROUP
    """Ctrl-C reaches the server, but not the processes that it has started."""

    def lock(handle: int, *, shared: bool = False) -> bool:
        """Lock an open file until it is closed; whether it was free. A shared lock is exclusive."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def replace(new: Path, old: Path) -> None:
        """Replace one file with another, though somebody may be reading it for a moment."""
        for _ in range(100):
            try:
                new.replace(old)
            except PermissionError:
                time.sleep(0.01)
            else:
                return
        new.replace(old)

    def is_mine(status: os.stat_result) -> bool:
        return True

    def is_mine_alone(status: os.stat_result) -> bool:
        return True

    def end_group(process: subprocess.Popen[bytes], *, at_once: bool = False) -> None:
        """End it; the processes that it has started notice that and end."""
        process.kill()

    def end_own_group() -> None:
        os._exit(1)

    def be_nice(by: int) -> None:
        """Do nothing: workers keep the usual priority."""

    def limits(what: str) -> tuple[int, int]:
        """The soft and the hard limit, which are fixed."""
        return FILES, FILES

    def limit(**most: int) -> None:
        """Do nothing: Windows has no such limits."""

else:
    import fcntl
    import resource

    INFINITY = resource.RLIM_INFINITY
    KILLED: tuple[int, ...] = (signal.SIGXCPU, signal.SIGKILL)
    """Signals that end a process which exceeds a limit."""
    OWN_GROUP = 0
    """On POSIX `start_new_session` makes the group."""

    def lock(handle: int, *, shared: bool = False) -> bool:
        """Lock an open file until it is closed; whether it was free."""
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def replace(new: Path, old: Path) -> None:
        new.replace(old)

    def is_mine(status: os.stat_result) -> bool:
        return status.st_uid == os.getuid()

    def is_mine_alone(status: os.stat_result) -> bool:
        """Whether only this process's user can read and write the file."""
        return is_mine(status) and stat.S_IMODE(status.st_mode) & 0o177 == 0

    def end_group(process: subprocess.Popen[bytes], *, at_once: bool = False) -> None:
        """End it and all that it has started."""
        os.killpg(process.pid, signal.SIGKILL if at_once else signal.SIGTERM)

    def end_own_group() -> None:
        os.killpg(os.getpgid(0), signal.SIGTERM)

    def be_nice(by: int) -> None:
        os.nice(by)

    def limits(what: str) -> tuple[int, int]:
        return resource.getrlimit(getattr(resource, f"RLIMIT_{what}"))

    def limit(**most: int) -> None:
        """Set the soft limits of this process, each by its name."""
        for what, soft in most.items():
            hard = limits(what)[1]
            soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
            resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (soft, hard))


ALWAYS_PASSED = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


def child_environment(*also: str) -> dict[str, str]:
    """The environment of a child process: what it needs, and no secret.

    The server's own environment has its token, the key that signs forms, and secrets of other
    programs; a hostile file that takes over a child process finds none of them.
    """
    return {name: os.environ[name] for name in (*ALWAYS_PASSED, *also) if name in os.environ}
