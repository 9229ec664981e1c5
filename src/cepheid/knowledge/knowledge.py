"""Knowledge: an ontology with its instances, and all that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from cepheid.errors import KnowledgeError, did_you_mean, warn
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.closure.lists import SAME
from cepheid.knowledge.closure.stored import closure_of
from cepheid.knowledge.column import AnswerColumn, Source, answer_column
from cepheid.knowledge.events.names import name_of
from cepheid.knowledge.filters.solving import solutions
from cepheid.knowledge.filters.syntax import Atom, Variable, located
from cepheid.knowledge.filters.variables import never_holds, variables_of
from cepheid.knowledge.ignored import Ignored, ignored_in
from cepheid.knowledge.packing import packed, unpacked
from cepheid.knowledge.reading import FORMATS, Format, format_of, is_name_of_file, triples
from cepheid.knowledge.terms import Iri, Literal, Term, Triple
from cepheid.knowledge.unknown import unknown_in_filter
from cepheid.knowledge.vocabulary import KNOWN_PREFIXES, classes_of, properties_of


class Knowledge:
    """Facts that do not change. Two with the same facts and prefixes are equal."""

    def __init__(self, facts: Sequence[Triple], prefixes: Mapping[str, str]) -> None:
        """
        Raises:
            KnowledgeError: the facts contradict each other.
        """
        self.prefixes: Mapping[str, str] = {**KNOWN_PREFIXES, **prefixes}
        """For the names in filters."""
        self.facts = tuple(facts)
        if (found := self.closure.contradiction) is not None:
            raise KnowledgeError(f"the knowledge contradicts itself, {found}")

    @staticmethod
    def read(
        source: str | Path | Iterable[str | Path],
        *,
        format: Format | None = None,  # noqa: A002 - as in rdflib
        prefixes: Mapping[str, str] | None = None,
    ) -> Knowledge:
        """Reads an ontology and instances.

        Args:
            source: A text, or the Path of a file; or several of these. Nothing is fetched from elsewhere, whatever is
                imported.
            format: "turtle" (what texts have by default), "ntriples" or "rdfxml"; by default what the ending of the
                file says: .ttl, .nt, .rdf or .owl.
            prefixes: The prefixes of names in filters; the one for names without a prefix is "".

        Raises:
            KnowledgeError: a text or a file has an error, the facts contradict each other, an argument is of another
                type, or pyoxigraph is missing.
        """
        if not isinstance(source, str | Path | Iterable):
            raise KnowledgeError(f"source: a text, a Path or several of these are expected, got {source!r}")
        _check_prefixes({} if prefixes is None else prefixes)
        if format is not None and format not in FORMATS:
            raise KnowledgeError(f"format: {format!r} is unknown. There are {', '.join(FORMATS)}")
        several = [source] if isinstance(source, str | Path) else [*source]
        each = (_read(one, format, f"k{number}") for number, one in enumerate(several))
        return Knowledge(_numbered(chain.from_iterable(each)), prefixes or {})

    def __getstate__(self) -> dict[str, object]:
        """What is sent to other processes, such as Spark's workers: few bytes, and nothing that follows from them. A
        process that needs no facts does not unpack them.
        """
        return {"prefixes": self.prefixes, "fingerprint": self.fingerprint, "_packed": self._packed}

    @cached_property
    def facts(self) -> tuple[Triple, ...]:
        """What was stated."""
        return unpacked(self._packed)

    @cached_property
    def _packed(self) -> bytes:
        return packed(self.facts)

    @cached_property
    def closure(self) -> Closure:
        """The facts and all that follows from them by the rules of OWL 2 RL."""
        return closure_of(self.facts, lambda: self.fingerprint)

    @cached_property
    def names(self) -> frozenset[Iri]:
        """The names in the facts."""
        return frozenset(term for fact in self.facts for term in fact if isinstance(term, Iri))

    @cached_property
    def aliases(self) -> Mapping[Iri, Iri]:
        """For each name of an individual that has several, the least of these."""
        terms, facts = self.closure.terms, self.closure.facts
        found: dict[Iri, Iri] = {}
        for subject, _, object_ in facts.matching(None, terms.number(SAME), None):
            one, other = terms.term(subject), terms.term(object_)
            if isinstance(one, Iri) and isinstance(other, Iri):
                found[one] = min(found.get(one, one), other, key=lambda name: (name.is_made_up, name.value))
        return found

    @cached_property
    def classes(self) -> frozenset[Iri]:
        """The names of classes."""
        return classes_of(self.facts)

    @cached_property
    def properties(self) -> frozenset[Iri]:
        """The names of properties."""
        return properties_of(self.facts)

    @cached_property
    def ignored(self) -> tuple[Ignored, ...]:
        """What is stated and ignored: axioms outside of OWL 2 RL, imports, and rules of other languages."""
        return ignored_in(self.facts, self.prefixes)

    def holds(self, filter: str, bindings: Mapping[str, str] | None = None) -> bool:  # noqa: A002 - it is one
        """Whether some assignment makes the filter true.

        Args:
            filter: Such as `Book(?c) ∧ hasPrice(?c, ?p) ∧ greaterThan(?p, 1000)`.
            bindings: The names of individuals by variable: whole IRIs, or `prefix:name` with a known prefix.

        Raises:
            KnowledgeError: the filter cannot be read, or lacks a variable of the bindings.
        """
        atoms, individuals = self._asked(filter, bindings)
        return next(solutions(atoms, self.closure, individuals), None) is not None

    def solutions(
        self,
        filter: str,  # noqa: A002 - it is one
        variables: Sequence[str],
        bindings: Mapping[str, str] | None = None,
    ) -> list[tuple[str, ...]]:
        """The values of variables for which the filter is true, without repetitions, in order.

        Args:
            filter: As for `holds`.
            variables: Variables of its class and property atoms.
            bindings: As for `holds`.

        Returns:
            A tuple for each assignment: the name (IRI) of an individual, the least one of those that are the same, or a
            literal as Turtle writes it.

        Raises:
            KnowledgeError: the filter cannot be read, or lacks one of the variables.
        """
        atoms, individuals = self._asked(filter, bindings)
        bound = {
            argument.name
            for atom in atoms
            if atom.kind != "builtin"
            for argument in atom.arguments
            if isinstance(argument, Variable)
        }
        names = [one.removeprefix("?") for one in variables]
        if unknown := [one for one in names if one not in bound]:
            known, lacking = ", ".join(sorted(bound)) or "none", ", ".join(map(repr, unknown))
            raise KnowledgeError(f"variables: no class or property atom has {lacking}. There are {known}")
        found = solutions(atoms, self.closure, individuals)
        return sorted({tuple(self._shown(one[name]) for name in names) for one in found})

    def _asked(
        self,
        filter: str,  # noqa: A002 - as above
        bindings: Mapping[str, str] | None,
    ) -> tuple[tuple[Atom, ...], dict[str, Term]]:
        """The atoms of a filter, and the individuals that its variables are; warns if it can never hold, and of names
        that are unknown.
        """
        if not isinstance(filter, str):
            raise KnowledgeError(f"filter: a text is expected, as 'Book(?c) ∧ hasPrice(?c, ?p)', got {filter!r}")
        places = located(filter, self.prefixes)
        atoms = tuple(atom for atom, _ in places)
        individuals = {name.removeprefix("?"): self._individual(text) for name, text in (bindings or {}).items()}
        known = variables_of(atoms)
        for name in individuals:
            if name not in known:
                hint = did_you_mean(name, known, if_none="It has none.")
                raise KnowledgeError(f"bindings: the filter has no variable {name!r}\n{hint}")
        if why := never_holds(filter, atoms, individuals):
            warn(why)
        for problem in unknown_in_filter(self, filter, places, "filter"):
            warn(str(problem))
        return atoms, individuals

    def _individual(self, text: str) -> Term:
        """The individual with a whole name (IRI), or with the name after a known prefix."""
        prefix, colon, _ = text.partition(":")
        is_short = not colon or prefix in self.prefixes
        return name_of(text, self.prefixes) if is_short or text.startswith("<") else Iri(text)

    def column(
        self,
        filter: str,  # noqa: A002 - it is one
        variable: str,
        bindings: Mapping[str, Source],
    ) -> AnswerColumn:
        """A column of answers for events, as the room of a sensor; `cepheid.add_column` adds it to them.

        Args:
            filter: As for `holds`.
            variable: The variable of the filter whose values are the answers.
            bindings: What other variables are for an event: a column, whose values are literals, or `individual(…)` for
                the individual that columns name, as in `{"point": individual("bldg:{point}")}`.

        Raises:
            KnowledgeError: the filter cannot be read or can never hold, or names are unknown; the message has all such
                faults.
        """
        return answer_column(self, filter, variable, bindings)

    def least_name(self, individual: Iri) -> str:
        """The name (IRI) that stands for the individual: the least one among those of the same individual."""
        return self._shown(individual)

    def _shown(self, term: Term) -> str:
        """The literal, or the least name among those of the same individual."""
        if isinstance(term, Literal):
            return str(term)
        terms, facts = self.closure.terms, self.closure.facts
        number, same = terms.find(term), terms.find(SAME)
        others = set() if number is None or same is None else facts.objects(number, same)
        names = [one.value for one in (term, *map(terms.term, others)) if isinstance(one, Iri)]
        return min(names, key=lambda one: (one.startswith("_:"), one))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the facts and prefixes, for patterns that use them. Where nodes have no name, the order in which
        the documents have them is part of it.
        """
        lines = sorted(" ".join(map(str, fact)) for fact in self.facts)
        prefixes = [f"@prefix {name}: <{iri}>" for name, iri in sorted(self.prefixes.items())]
        return blake2b("\n".join([*prefixes, *lines]).encode(), digest_size=16).hexdigest()

    @property
    def ntriples(self) -> str:
        """The facts as N-Triples, from which the same knowledge is read."""
        return "".join(f"{' '.join(map(str, fact))} .\n" for fact in self.facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Knowledge) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Knowledge({len(self.facts)} facts, {len(self.closure.facts)} with those that follow)"


def _numbered(facts: Iterable[Triple]) -> list[Triple]:
    """The facts with nodes without a name numbered in their order, over all documents: so they are the same however the
    facts are divided into documents.
    """
    names: dict[Term, Iri] = {}

    def numbered(term: Term) -> Term:
        if not isinstance(term, Iri) or not term.is_made_up:
            return term
        return names.setdefault(term, Iri(f"_:k.{len(names)}"))

    return [(numbered(subject), predicate, numbered(object_)) for subject, predicate, object_ in facts]


def _check_prefixes(prefixes: object) -> None:
    example = "as in {'shop': 'http://shop.example/'}"
    if not isinstance(prefixes, Mapping):
        raise KnowledgeError(f"prefixes: the IRIs of prefixes are expected, {example}, got {prefixes!r}")
    for name, iri in prefixes.items():
        if not isinstance(name, str) or not isinstance(iri, str) or ":" in name:
            message = "texts are expected, and a prefix has no colon"
            raise KnowledgeError(f"prefixes: {message}, {example}, got {name!r}: {iri!r}")


def _read(source: str | Path, format: Format | None, scope: str) -> list[Triple]:  # noqa: A002 - as above
    if not isinstance(source, str | Path):
        raise KnowledgeError(f"source: a text or a Path is expected, got {source!r}")
    if isinstance(source, str):
        try:
            return triples(source, format or "turtle", scope=scope)
        except KnowledgeError as error:
            if not is_name_of_file(source):
                raise
            raise KnowledgeError(f"{error}\nTo read a file, write Path({source!r}).") from error
    try:
        content = source.read_bytes()
    except OSError as error:
        raise KnowledgeError(f"{source} cannot be read: {error.strerror}") from error
    return triples(content, format or format_of(source), str(source), scope)
