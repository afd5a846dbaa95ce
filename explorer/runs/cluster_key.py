"""The key of the local cluster: who cannot read its file sends the workers nothing.

One file, a private key and its certificate, which is the only authority that scheduler,
workers and servers believe: each shows it to the others (mutual TLS), since each runs as the
user who owns the file. It is kept in the folder of runs, so that the next server finds the
cluster, and only its path is ever handed to a process.
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
NEVER = datetime.datetime(9999, 12, 31, 23, 59, 59)
"""The date that RFC 5280 gives to a certificate that does not expire."""


def security_of(file: Path) -> dict[str, Any]:
    """The settings of `Security` by this file, which is made where it is missing or not ours."""
    settings = _settings(file)
    if not _is_private(file) or not _can_be_read(settings):
        write_text(file, _new_key())
    return settings


def found_security(file: Path) -> Security:
    """Those of a cluster that has been started with this file. OSError where it is not ours."""
    if not _is_private(file):
        raise PermissionError("The key of the training cluster is not this user's alone.")
    return Security(**_settings(file))


def private_folder(path: Path) -> Path:
    """Make it for this user alone. PermissionError where somebody else has made it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or not is_mine(found):
        raise PermissionError("The work folder of the training cluster is not this user's.")
    path.chmod(0o700)
    return path


def _settings(file: Path) -> dict[str, Any]:
    """Each value is given, so that none is taken from a user's configuration of Dask."""
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
        found = file.lstat()
    except OSError:
        return False
    return is_mine_alone(found)


def _can_be_read(settings: dict[str, Any]) -> bool:
    try:
        Security(**settings).get_connection_args("client")
    except OSError:
        return False
    return True


def _new_key() -> str:
    """Made with the library that `Security.temporary` takes, but a file that does not expire."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(yesterday)
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
