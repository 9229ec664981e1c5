"""Ontologies with their instances, what follows from them, and events as individuals."""

from cepheid.errors import KnowledgeError
from cepheid.knowledge.events.mapping import EventMapping, constant, individual, node
from cepheid.knowledge.knowledge import Knowledge

__all__ = ["EventMapping", "Knowledge", "KnowledgeError", "constant", "individual", "node"]
