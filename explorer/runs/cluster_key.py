"""The key of the local cluster: only a process that can read its file can send work.

One file has a private key and its certificate, the only authority that scheduler, workers and
servers trust: each shows it to the others (mutual TLS), since each runs as the user who owns the
file. It lies in the folder of runs, so that the next server finds the cluster, and a process gets
only its path.
"""

import datetime
import stat
import sys
from pathlib import Path
from typing import Any

from distributed import Security

from explorer.system.atomic_files import write_text
from explorer.system.operating_system import is_mine, is_mine_alone

NAME = "explorer-training"
ALWAYS = datetime.datetime(1970, 1, 1)
"""Before any clock, so that a key made by a wrong one is valid once the clock is right."""
NEVER = datetime.datetime(9999, 12, 31, 23, 59, 59)
"""The date that RFC 5280 gives to a certificate that does not expire."""


def security_of(file: Path) -> dict[str, Any]:
    """The settings of `Security` for this file, written if it is missing, not ours or not valid."""
    settings = _settings(file)
    if not _is_private(file) or not _is_valid(file, settings):
        write_text(file, _new_key())
    return settings


def client_security(file: Path) -> Security:
    """The settings to connect to a cluster with this file. OSError if the file is not ours."""
    if not _is_private(file):
        raise PermissionError("The key of the training cluster is not this user's alone.")
    return Security(**_settings(file))


def private_folder(path: Path) -> Path:
    """Create a folder for this user alone. PermissionError if it is somebody else's."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or not is_mine(status):
        raise PermissionError("The work folder of the training cluster is not this user's.")
    path.chmod(0o700)
    return path


def _settings(file: Path) -> dict[str, Any]:
    """All settings of `Security`, so that none comes from a user's configuration of Dask."""
    roles = ("client", "scheduler", "worker")
    return {
        "require_encryption": True,
        "tls_ca_file": str(file),
        "tls_ciphers": None,
        **{f"tls_{role}_cert": str(file) for role in roles},
        **{f"tls_{role}_key": None for role in roles},  # it stands in the certificate's file
    }


def _is_private(file: Path) -> bool:
    try:
        return is_mine_alone(file.lstat())
    except OSError:
        return False


def _is_valid(file: Path, settings: dict[str, Any]) -> bool:
    """Whether it can be read, and its dates hold now; an earlier version's began with its clock."""
    from cryptography import x509

    try:
        Security(**settings).get_connection_args("client")
        begins = x509.load_pem_x509_certificate(file.read_bytes()).not_valid_before_utc
    except (OSError, ValueError):
        return False
    return begins <= datetime.datetime.now(datetime.UTC)


def _new_key() -> str:
    """A key and a certificate as `Security.temporary` makes them, but one that does not expire."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ALWAYS)
        .not_valid_after(NEVER)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (private + certificate.public_bytes(pem)).decode()


if __name__ == "__main__":  # for a cluster that is started by hand, as in deploy/compose.yaml
    security_of(Path(sys.argv[1]))
