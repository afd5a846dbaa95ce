"""The recipes for containers and the page on public servers say what is there."""

import json
import re
import shlex
import shutil
import sys
from configparser import ConfigParser
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from explorer.system import limits
from explorer.system.limits import DRAIN_SECONDS
from explorer.text.published.child import ROOM
from explorer.text.published.process import MAX_CHILDREN
from tests.source import ROOT, python_files

DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"
PAGE = ROOT / "docs" / "public_server.md"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
TRAINING = ("key", "scheduler", "trainer")
SERVER_BYTES = 500 * limits.MB
"""A server that nobody asks for anything, with room for its sessions: `README.md` has figures."""
FORMS_OF_A_MESSAGE = 6
"""Times that a session keeps what was said: as it came, as it is, and with 4 bytes a letter."""
WORKER_BYTES = 400 * limits.MB
"""A process that trains, before it has a model: torch and distributed."""
REPLICAS = [name for name in SERVICES if name.startswith("replica-")]


def instructions() -> list[tuple[str, str]]:
    """The lines of the Dockerfile, with those that go on in the next joined."""
    text = DOCKERFILE.read_text("utf-8").replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    return [(word, rest) for word, rest in lines]


@pytest.mark.parametrize("name", SERVICES)
def test_no_container_has_rights_or_writes_into_its_root(name: str) -> None:
    service = SERVICES[name]
    assert not {"0", "root"} & {*str(service["user"]).split(":")}
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not {"privileged", "cap_add", "network_mode", "pid"} & service.keys()


def test_only_the_proxy_is_reached_from_outside() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    assert COMPOSE["networks"]["training"]["internal"]
    assert "training" not in SERVICES["proxy"]["networks"]
    for name in TRAINING:
        assert SERVICES[name]["networks"] == ["training"]


@pytest.mark.parametrize("name", [*REPLICAS, *TRAINING])
def test_who_trains_listens_to_who_has_the_key(name: str) -> None:
    """`tests/runs/test_cluster.py` starts processes by these very settings."""
    service = SERVICES[name]
    if name != "key":
        assert COMPOSE["x-key"].items() <= service["environment"].items()
        assert service["depends_on"]["key"] == {"condition": "service_completed_successfully"}
    assert "tcp://" not in str(service)
    assert service["volumes"] == SERVICES["key"]["volumes"]
    files = {value for value in COMPOSE["x-key"].values() if value.endswith(".pem")}
    assert files == {SERVICES["key"]["command"][-1]}


def test_the_proxy_leads_to_the_replicas_and_they_believe_it_alone() -> None:
    named = re.findall(r"^server (\S+):8501 ", (DEPLOY / "replicas.conf").read_text(), re.M)
    assert named == REPLICAS
    assert len(named) >= 2
    assert COMPOSE["networks"]["readers"]["enable_ipv6"]
    subnets = [each["subnet"] for each in COMPOSE["networks"]["readers"]["ipam"]["config"]]
    places = [SERVICES[name]["networks"]["readers"] for name in ("proxy", *REPLICAS)]
    for family, subnet in zip(("ipv4_address", "ipv6_address"), subnets, strict=True):
        addresses = [place[family] for place in places]
        assert len(set(addresses)) == len(places)
        assert all(ip_address(each) in ip_network(subnet) for each in addresses)
    front = f"{places[0]['ipv4_address']},{places[0]['ipv6_address']}"
    assert {SERVICES[name]["environment"]["FORWARDED_ALLOW_IPS"] for name in REPLICAS} == {front}
    (port,) = SERVICES["proxy"]["ports"]
    inside = port.partition(":")[2]
    listens = (DEPLOY / "listen.conf").read_text().splitlines()
    assert listens == [f"listen {inside};", f"listen [::]:{inside};"]


def test_replicas_share_their_folders_and_secrets_and_have_time_to_drain() -> None:
    first, *others = (SERVICES[name] for name in REPLICAS)
    for other in others:
        assert {**other, "networks": 0} == {**first, "networks": 0}
    assert first["volumes"] == SERVICES["trainer"]["volumes"]
    assert int(first["stop_grace_period"].removesuffix("s")) > DRAIN_SECONDS.public
    for name in ("EXPLORER_ADMIN_TOKEN", "STREAMLIT_SERVER_COOKIE_SECRET", "EXPLORER_HOSTS"):
        assert first["environment"][name] == f"${{{name}:?}}", "nobody starts without it"


def bytes_of(said: str) -> int:
    """What the compose file's `4g` is."""
    return int(said[:-1]) << {"m": 20, "g": 30}[said[-1]]


def test_what_a_replica_may_hold_fits_into_its_container() -> None:
    """Everything that it keeps, and as many of the largest passes as are made at once.

    A model that is being loaded is compared with what is free, and so is a pass.
    """
    kept = [limits.WEIGHTS_BYTES, limits.RESULTS_BYTES, limits.UPLOADS_RECEIVING]
    kept += [limits.KEPT_BYTES, limits.OWN_LESSONS_BYTES]
    passes = limits.PAGES_AT_ONCE.public * limits.PASS_BYTES.public
    said = FORMS_OF_A_MESSAGE * limits.MESSAGES_BYTES.public
    held = SERVER_BYTES + said + sum(each.public for each in kept) + passes + MAX_CHILDREN * ROOM
    assert limits.MODEL_BYTES.public <= limits.WEIGHTS_BYTES.public
    for name in REPLICAS:
        assert held <= bytes_of(SERVICES[name]["mem_limit"]), f"{held:,}"


def test_what_the_connections_of_the_proxy_hold_fits_into_its_container() -> None:
    """Each holds a head, a piece of a body, buffers of an answer and of TLS, and some more."""
    text = (DEPLOY / "nginx.conf").read_text("utf-8")
    numbers = r"worker_processes (\d+);.*worker_connections (\d+);.*header_buffers 2 (\d+)k;"
    ((workers, connections, head),) = re.findall(numbers, text, re.S)
    of_reader = (2 * int(head) + 16 + 9 * 8 + 40 + 16) * 1024
    held = int(workers) * (int(connections) // 2 * of_reader + 20 * limits.MB)
    unit_bytes = unit("explorer-proxy.service")["MemoryMax"].lower()
    for most in (SERVICES["proxy"]["mem_limit"], unit_bytes):
        assert held <= bytes_of(most), f"{held:,}"


def test_what_runs_may_take_fits_into_the_container_that_trains() -> None:
    command = SERVICES["trainer"]["command"]
    held = int(command[command.index("--nworkers") + 1]) * (WORKER_BYTES + limits.RUN_MEMORY.public)
    assert held <= bytes_of(SERVICES["trainer"]["mem_limit"]), f"{held:,}"


def test_what_the_proxy_mounts_is_there() -> None:
    config, *_ = [word for word in SERVICES["proxy"]["command"] if word.endswith(".conf")]
    assert config in [volume.split(":")[1] for volume in SERVICES["proxy"]["volumes"]]
    for volume in SERVICES["proxy"]["volumes"]:
        assert (DEPLOY / volume.split(":")[0]).is_file()


def test_the_image_runs_as_nobody_and_holds_the_app() -> None:
    found = instructions()
    (user,) = (rest for word, rest in found if word == "USER")
    assert user == SERVICES[REPLICAS[0]]["user"]
    assert {word for word, _ in found[[word for word, _ in found].index("USER") :]} <= {
        *("USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "CMD")
    }, "what root does comes before"
    copied = {rest.split()[0] for word, rest in found if word == "COPY"}
    assert all((ROOT / each).exists() for each in copied)
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert copied == {each.removeprefix("!") for each in kept if each.startswith("!")}
    assert {"explorer", "models", "pages", "app.py", ".streamlit"} <= copied
    (base,) = (rest for word, rest in found if word == "FROM")
    version = re.fullmatch(r"python:3\.(\d+)\.\d+-slim-[a-z]+", base)
    assert version is not None, "a version that stays the same"
    assert int(version[1]) >= 11
    assert re.fullmatch(r"nginx:\d+\.\d+\.\d+-[a-z]+", SERVICES["proxy"]["image"])


def test_the_commands_are_there() -> None:
    words = dict(instructions())
    commands = [json.loads(words["CMD"]), json.loads(words["HEALTHCHECK"].partition("CMD ")[2])]
    commands += [SERVICES[name]["command"] for name in TRAINING]
    required = str(Path(sys.executable).parent)  # what the packages that the app requires bring
    assert [command[0] for command in commands if not shutil.which(command[0], path=required)] == []
    for command in commands:
        for option, module in pairwise(command):
            if option in ("-m", "--preload", "--preload-nanny"):
                assert find_spec(module) is not None
    assert "/healthz" in commands[1][-1]


def test_every_setting_of_the_app_is_named_and_each_that_is_named_is_read() -> None:
    def source(*rooms: str) -> str:
        return "\n".join((ROOT / path).read_text("utf-8") for path in python_files(*rooms))

    app = source("app.py", "explorer", "models", "pages")
    read = {name.removesuffix("_") for name in re.findall(r"\bEXPLORER_[A-Z_]+", app)}
    assert len(read) > 10
    told = PAGE.read_text("utf-8")
    settings = told.partition("## Settings")[2].partition("\n## ")[0]
    assert [name for name in sorted(read) if not re.search(rf"`{name}\b|`{name}_", settings)] == []
    told += str(COMPOSE) + DOCKERFILE.read_text("utf-8")
    named = {*re.findall(r"\bEXPLORER_[A-Z]+(?:_[A-Z]+)*", told)} - {"EXPLORER_LIMIT"}
    assert {"EXPLORER_PUBLIC", "EXPLORER_HOSTS", "EXPLORER_ADMIN_TOKEN"} <= named
    assert [name for name in sorted(named) if f'"{name}"' not in source("app.py", "explorer")] == []


def test_every_file_of_a_recipe_that_is_named_is_there() -> None:
    named = re.findall(r"\b(deploy/[a-z@./-]+[a-z])", PAGE.read_text("utf-8"))
    assert [path for path in named if not (ROOT / path).is_file()] == []
    assert "docs/public_server.md" in (ROOT / "README.md").read_text("utf-8")


def unit(name: str) -> dict[str, str]:
    """What a unit of systemd says of its service."""
    found = ConfigParser(interpolation=None, strict=False)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read(DEPLOY / name, "utf-8")
    return dict(found["Service"])


def test_units_start_what_the_containers_start() -> None:
    app, front = unit("explorer@.service"), unit("explorer-proxy.service")
    _, _, command = app["ExecStart"].partition("/bin/")
    assert command.split()[:3] == json.loads(dict(instructions())["CMD"])[:3]
    assert app["User"] != "root"
    assert app["KillMode"] == "process", "the training goes on for the other replicas"
    assert int(app["TimeoutStopSec"]) > DRAIN_SECONDS.public
    told = PAGE.read_text("utf-8")
    for place in (app["EnvironmentFile"], app["WorkingDirectory"], app["ReadWritePaths"]):
        assert place in told
    started, asked = shlex.split(front["ExecStart"]), SERVICES["proxy"]["command"]
    assert [*started[:1], started[3], started[7]] == ["/usr/sbin/nginx", "-e", "-g"]
    options = [word for word in started if word.startswith("-")]
    assert options == [word for word in asked if word.startswith("-")]
    assert front["RuntimeDirectory"] in started[2]
    assert front["StandardOutput"].startswith("append:/"), "a socket cannot be opened by its path"
