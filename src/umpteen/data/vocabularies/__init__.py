"""Readers of vocabularies: thesauri in SKOS, tables of names, JSON Lines."""

from umpteen.data.vocabularies.reading import read_vocabulary

__all__ = ["read_vocabulary"]
