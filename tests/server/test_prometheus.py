"""Figures for Prometheus: on their own port, and of nobody."""

import urllib.request

import pytest
from prometheus_client import REGISTRY

from explorer.app import throttle
from explorer.app.session import Session
from explorer.server import prometheus
from explorer.server.prometheus import RequestCounts
from tests.served import free_port
from tests.server.asking import Inside, ask, scope_of


def figure(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_they_are_on_a_port_of_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("EXPLORER_METRICS", str(port))
    assert prometheus.host_and_port() == ("127.0.0.1", port)
    end = prometheus.serve(readers=lambda: 7, draining=lambda: False)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            said = answer.read().decode()
    finally:
        end()
    assert "explorer_readers 7.0" in said
    assert "explorer_draining 0.0" in said
    assert "process_resident_memory_bytes" in said


def test_an_address_is_named_or_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORER_METRICS", raising=False)
    prometheus.serve()()
    assert prometheus.host_and_port() is None
    for said, host in (("0.0.0.0:9464", "0.0.0.0"), ("[::1]:9464", "::1")):
        monkeypatch.setenv("EXPLORER_METRICS", said)
        assert (prometheus.host_and_port(), prometheus.fault()) == ((host, 9464), None)
    for wrong in ("yes", "0", "65536", "http://here:9464", "here:", "a b:1"):
        monkeypatch.setenv("EXPLORER_METRICS", wrong)
        assert f"must be a port or host:port, not {wrong!r}" in str(prometheus.fault())


def test_answers_and_connections_are_counted() -> None:
    before = figure("explorer_requests_total", status="200"), figure("explorer_connections_total")
    ask(RequestCounts(Inside()), scope_of("/attention"))
    ask(RequestCounts(Inside()), scope_of(kind="websocket"))
    after = figure("explorer_requests_total", status="200"), figure("explorer_connections_total")
    assert after == (before[0] + 1, before[1] + 1)


def test_pages_are_counted_by_name_with_their_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "session", lambda: Session(page="tokens"))
    names = ("explorer_page_seconds_count", "explorer_page_errors_total")
    before = [figure(name, page="tokens") for name in names]
    with throttle.count_seconds():
        pass
    with pytest.raises(ValueError, match="typed"), throttle.count_seconds():
        raise ValueError("what a reader typed")
    assert [figure(name, page="tokens") for name in names] == [before[0] + 2, before[1] + 1]
