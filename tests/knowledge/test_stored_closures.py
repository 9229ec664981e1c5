"""What follows from large knowledge is found once on a machine, and read from a file afterwards."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from cepheid.knowledge import Knowledge, KnowledgeError
from cepheid.knowledge.closure import stored
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.closure.stored import LARGE, MOST_FILES
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Triple

HOUSE = "http://house.example/"
ONTOLOGY = f"""
@prefix : <{HOUSE}> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:in owl:propertyChainAxiom ( :on :of ) ; rdfs:label "im Haus"@de .
:Lit owl:intersectionOf ( :Lamp :Used ) . :Lamp rdfs:subClassOf :Thing . :Lamp owl:disjointWith :Room .
"""
LAMPS = "".join(f":l{n} a :Lamp ; :on :d{n} . :d{n} :of :r{n} .\n" for n in range(LARGE // 3))
PREFIXES = {"": HOUSE}


def read(more: str = "") -> Knowledge:
    return Knowledge.read(ONTOLOGY + LAMPS + more, prefixes=PREFIXES)


def files(cache: Path) -> list[Path]:
    return sorted((cache / "cepheid" / "knowledge").glob("*.npz"))


def contents(closure: Closure) -> list[tuple[Triple, int]]:
    return sorted(closure.own_facts(), key=str)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for cached files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_what_is_read_equals_what_was_closed(cache: Path) -> None:
    """The second time the same facts have the same numbers, and rules of lists go on to hold in sessions."""
    first = read()
    assert len(files(cache)) == 1
    second = read()
    for knowledge in (first, second):
        assert knowledge.holds("in(:l7, :r7) ^ Thing(:l7)")
        session = Closure(knowledge.closure)
        assert not any(map(str, session.own_facts()))
        session.add(triples(f"@prefix : <{HOUSE}> . :l1 a :Used . :d1 :of :r2 .", "turtle"), 5)
        followed = {" ".join(map(str, fact)).replace(HOUSE, ":") for fact, _ in session.own_facts()}
        assert "<:l1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <:Lit>" in followed
        assert "<:l1> <:in> <:r2>" in followed
    assert [*map(first.closure.terms.term, range(len(first.closure.terms)))] == [
        *map(second.closure.terms.term, range(len(second.closure.terms)))
    ]
    assert contents(first.closure) == contents(second.closure)


def test_the_file_is_what_is_read(cache: Path) -> None:
    """The second time nothing is closed: what the file says is what holds."""
    read()
    [file] = files(cache)
    with np.load(file, allow_pickle=False) as archive:
        terms, facts = archive["terms"], archive["facts"]
    np.savez(file, terms=terms, facts=facts[:0])
    assert len(read().closure.facts) == 0


@pytest.mark.parametrize("change", ["cut", "emptied", "replaced", "flipped"])
def test_damaged_files_are_written_anew(cache: Path, change: str) -> None:
    """Whatever a damaged file has, the facts are right, and so is the file afterwards."""
    expected = contents(read().closure)
    [file] = files(cache)
    whole = file.read_bytes()
    damaged = {
        "cut": [whole[:size] for size in (1, 100, len(whole) // 2, len(whole) - 1)],
        "emptied": [b""],
        "replaced": [b"\x80\x04N.", b"PK\x03\x04 and nothing"],
        "flipped": [
            whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]
            for at in np.linspace(0, len(whole) - 1, 12).astype(int)
        ],
    }
    for content in damaged[change]:
        file.write_bytes(content)
        assert contents(read().closure) == expected
        assert contents(read().closure) == expected


def test_knowledge_is_small_for_other_processes() -> None:
    """Another process gets the facts alone, and finds what follows, or reads it, when it needs it."""
    knowledge = read(r""":l1 :says "a\"b", "ü"@de, 1, "1"^^:own, "" . [] :of "_:x" .""")
    sent = pickle.dumps(knowledge)
    assert len(sent) < 20 * len(knowledge.facts)
    received = pickle.loads(sent)  # noqa: S301 - our own
    assert {*vars(received)} & {"facts", "closure"} == set()
    assert received == knowledge
    assert received.facts == knowledge.facts
    assert contents(received.closure) == contents(knowledge.closure)
    assert pickle.loads(pickle.dumps(Knowledge((), {}))).facts == ()  # noqa: S301 - our own


def test_small_knowledge_is_not_stored(cache: Path) -> None:
    """Few facts are closed each time."""
    Knowledge.read(ONTOLOGY)
    assert not files(cache)


def test_other_facts_have_another_file(cache: Path) -> None:
    """One more fact is other knowledge."""
    read()
    assert read(":l1 a :Used .").holds("Lit(:l1)")
    assert not read().holds("Lit(:l1)")
    assert len(files(cache)) == 2


def test_contradictions_are_not_stored(cache: Path) -> None:
    """Knowledge that contradicts itself is an error each time."""
    for _ in range(2):
        with pytest.raises(KnowledgeError, match="contradicts itself, by the rule cax-dw"):
            read(":l1 a :Room .")
    assert not files(cache)


def test_without_a_folder_nothing_is_stored(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no folder can be written, the facts are closed each time."""
    file = cache / "file"
    file.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    monkeypatch.setattr(tempfile, "tempdir", str(file))
    assert read().holds("in(:l7, :r7)")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user who does not exist")
def test_users_without_a_home_use_the_folder_for_temporary_files() -> None:
    """Containers may run as a user whom the system does not know."""
    code = (
        "import os; from cepheid.knowledge.caches import cache_folder\n"
        "os.environ.pop('HOME', None); os.environ.pop('XDG_CACHE_HOME', None); os.setuid(54321)\n"
        "print(cache_folder('test'))"
    )
    folder = Path(tempfile.gettempdir()) / "cepheid-54321"
    try:
        assert run(code).communicate()[0].strip() == str(folder / "cepheid" / "test")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_full_disk_is_no_error(cache: Path) -> None:
    """A file that cannot be written is left out."""
    size = 4096
    code = (
        f"import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n"
        f"from tests.knowledge.test_stored_closures import read; print(read().holds('in(:l7, :r7)'))"
    )
    assert run(code).communicate()[0].strip() == "True"
    assert not [*(cache / "cepheid" / "knowledge").glob("*.*")]


def test_of_several_processes_one_closes(cache: Path) -> None:
    """Processes that start at once find the same, and only one of them writes."""
    code = (
        "from tests.knowledge.test_stored_closures import read; from pathlib import Path; import os\n"
        "print(read().holds('in(:l7, :r7)'))\n"
        f"print([file.stat().st_ino for file in Path({str(cache)!r}).rglob('*.npz')])"
    )
    processes = [run(code) for _ in range(4)]
    answers = {process.communicate()[0] for process in processes}
    [file] = files(cache)
    assert answers == {f"True\n[{file.stat().st_ino}]\n"}


def test_only_the_newest_files_remain(cache: Path) -> None:
    """Files that were not read for longest are removed, and so is what a killed process has left."""
    folder = cache / "cepheid" / "knowledge"
    folder.mkdir(parents=True)
    for number in range(MOST_FILES + 3):
        file = folder / f"{number}.npz"
        file.touch()
        os.utime(file, (number, number))
    (folder / "left.part").touch()
    read()
    remaining = {file.name for file in folder.iterdir()}
    assert len(remaining) == MOST_FILES + 1
    assert "lock" in remaining
    assert not remaining & {"0.npz", "1.npz", "2.npz", "3.npz", "left.part"}


def test_other_sources_have_another_file() -> None:
    """All modules that the closure consists of are part of the name of its file."""
    folder = Path(stored.__file__).parent
    named = {(folder / name).resolve() for name in stored._SOURCES}  # noqa: SLF001 - what it names is the contract
    assert named >= {file for file in folder.glob("*.py") if file.name != "__init__.py"}


def run(code: str) -> subprocess.Popen[str]:
    """A process that runs the code; its environment has the cache folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # Without compiled modules, which a process with a full disk would write in part.
    return subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
