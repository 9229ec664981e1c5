"""Subscriptions as commands: to a host that another process runs, and to a store that nobody has open."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.durable.routing.hosts import LOOPBACK
from tests.durable.routing.receiver import running_receiver
from tests.durable.test_commands import PATTERN, ROWS, cepheid, declare, running, said, until


@pytest.fixture(params=["sqlite", "duckdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url = f"{request.param}:///{tmp_path}/alerts"
    pattern = tmp_path / "pairs.json"
    pattern.write_text(json.dumps(PATTERN))
    (tmp_path / "events").mkdir()
    declare(url)
    said("deploy", url, str(pattern), "--input", "events", "--key", "user", "--measure", "id=b.id")
    return url


def add(folder: Path, number: int) -> None:
    """A file with a pair of events, which have this number and the one before."""
    rows = (
        f"{number - 1},2024-03-04T10:{number - 1:02}:00Z,u,a\n{number},2024-03-04T10:{number:02}:00Z,u,b\n"  # one pair
    )
    (folder / f"{number:02}.csv").write_text(ROWS + rows)


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_while_it_runs(store: str, tmp_path: Path) -> None:
    """A running host takes subscriptions from another process, delivers beside its feeds, keeps what failed, and sends
    it again when asked.
    """
    folder = tmp_path / "events"
    with running_receiver() as receiver:
        receiver.answer = lambda one: (422 if one.row["id"] == 3 else 204, {})
        with running(store, folder, signal.SIGTERM, "--allow", receiver.origin, "--allow", LOOPBACK):
            said("subscribe", store, "hook", "--to", f"{receiver.origin}/hook", "--where", "id < 6")
            said("subscribe", store, "rows", "--to", "table://alerts", "--pattern", "pairs")
            refused = cepheid("subscribe", store, "other", "--to", "https://example.com/")
            assert refused.returncode == 1
            assert "the host may not reach https://example.com:443" in refused.stderr
            for number in (1, 3, 5, 7):
                add(folder, number)
            wait_until(lambda: receiver.ids == [1, 3, 5])
            until("SELECT count(*) AS n FROM alerts", "4", store)
            until("SELECT subscription FROM dead_letters", "hook", store)
            assert "the answer is 422" in said("dead-letters", store, "hook")
            receiver.answer = lambda _: (204, {})
            assert said("resend", store, "hook", "--number", "2") == "to be sent again: 1\n"
            wait_until(lambda: receiver.ids == [1, 3, 5, 3])
            said("unsubscribe", store, "hook")
        assert json.loads(said("subscriptions", store, "--json"))["rows"] == [
            {
                "name": "rows",
                "pattern": "pairs",
                "condition": None,
                "target": "table://alerts",
                "delivered": 4,
                "status": "active",
                "problem": None,
            }
        ]


def test_before_it_runs(store: str, tmp_path: Path) -> None:
    """What is subscribed while no host runs is delivered by the next one, which says what may be reached."""
    with running_receiver() as receiver:
        said("subscribe", store, "hook", "--to", receiver.origin, "--attempts", "2", "--pause", "1 millisecond")
        add(tmp_path / "events", 1)
        done = cepheid("run", store, "--from", f"files://{tmp_path}/events", "--once")
        needed = f"the host may not reach {receiver.origin}: run it with --allow {receiver.origin}"
        assert done.returncode == 0
        assert done.stderr.startswith(f"subscription 'hook' waits: {needed}\n")
        assert receiver.ids == []
        assert "the host may not reach" in said("subscriptions", store)
        figures = tmp_path / "figures"
        allow = ("--allow", receiver.origin, "--allow", LOOPBACK)
        said("run", store, "--from", f"files://{tmp_path}/events", "--once", *allow, "--metrics", str(figures))
        assert receiver.ids == [1]
        (row,) = json.loads(said("subscriptions", store, "--json"))["rows"]
        assert (row["status"], row["problem"]) == ("active", None)  # what it waited for is there
        text = figures.read_text()
        assert 'cepheid_subscription_behind_rows{host="alerts",subscription="hook"} 0' in text
        assert 'cepheid_subscription_dead_letters{host="alerts",subscription="hook"} 0' in text
        wrong = cepheid("run", store, "--once", "--allow", "example.com")
        assert wrong.returncode == 1
        assert "allow: 'example.com' is none of" in wrong.stderr


def test_wrong_arguments(store: str) -> None:
    """Problems of the arguments are reported at once, in order."""
    done = cepheid("subscribe", store, "x", "--to", "nowhere", "--where", "amount > 1", "--pause", "soon")
    assert done.returncode == 1
    for expected in ("--to: 'nowhere' is none of", "no column named 'amount'", "--pause: "):
        assert expected in done.stderr
    done = cepheid("subscribe", store, "", "--to", "https://a:b@x.org/", "--pattern", "pears", "--after", "9")
    assert done.returncode == 1
    for expected in (
        "--to: this https URL has a password",
        "signed by --secret env:NAME",
        "NAME: 1 to 100",
        "--pattern: no pattern 'pears' was deployed. Did you mean 'pairs'?",
        "--after: the last number in the outbox is 0, got 9",
    ):
        assert expected in done.stderr
    done = cepheid("run", store, "--once", "--allow", "example.com")
    assert done.stderr.startswith("--allow: 'example.com' is none of")


def test_nothing_to_list(store: str) -> None:
    """Where there is nothing to list, a command says so and what to do; JSON stays as it is."""
    for command, said_to_people in {
        "subscriptions": "no subscriptions: add one with `cepheid host subscribe`\n",
        "dead-letters": "no dead letters\n",
        "open pairs": "nothing is open\n",
        "matches pairs": "no matches\n",
    }.items():
        name, *pattern = command.split()
        done = cepheid(name, store, *pattern)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", said_to_people)
        done = cepheid(name, store, *pattern, "--json")
        assert (json.loads(done.stdout)["rows"], done.stderr) == ([], "")
    done = cepheid("dead-letters", store, "hook")
    assert (done.returncode, done.stderr) == (
        1,
        "there is no subscription 'hook'. The host has none: add one with subscribe\n",
    )


def test_choices(store: str) -> None:
    """A wrong choice is answered with the choices alone."""
    done = cepheid("retire", store, "pairs", "--how", "dran")
    assert done.returncode == 2
    assert "'dran' is not one of 'drain', 'drop'" in " ".join(done.stderr.split())
    assert "Value error" not in done.stderr
