"""Read and write corpora of Annif, whatever form they have."""

import os
from os import PathLike, fspath
from pathlib import Path

from umpteen.data.formats.annif import files, folders
from umpteen.data.formats.annif.subjects import SubjectWriter
from umpteen.data.formats.compression import open_sink
from umpteen.data.formats.source import Readable, open_source
from umpteen.data.label_vocabulary import LabelVocabulary
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError


def read_annif(path: Readable, vocabulary: LabelVocabulary | None = None) -> Samples:
    r"""Read a corpus of Annif: documents with the URIs of their subjects as labels.

    - TSV without a header, also `.tsv.gz`: a text, a tab, and URIs. Lines without a tab are left
      out with a warning, unless there is no tab at all: then they are texts without labels.
    - CSV, also `.csv.gz`, with the columns `text`, `subject_uris` and perhaps `document_id`.
    - JSON Lines, also `.jsonl.gz`, with `text`, `subjects` and perhaps `document_id`.
    - A folder of `.txt` files, with subjects in `.tsv` (URIs and names) or `.key` (names) files of
      the same name, or of `.json` files.

    With a `vocabulary`, labels are those of the vocabulary, even if the corpus has names instead of
    URIs; subjects that are not in the vocabulary are left out with a warning.

    >>> from io import BytesIO
    >>> read_annif(
    ...     BytesIO(b"a barking pet\t<http://example.org/1> <http://example.org/2>\n")
    ... ).labels
    [['http://example.org/1', 'http://example.org/2']]
    """
    if folders.is_folder(path):
        (samples,) = folders.stream_folder(path, None, vocabulary)
        return samples
    with open_source(path) as source:
        source.format = "annif"
        (samples,) = files.stream(source, None, vocabulary)
        return samples


def write_annif(
    samples: Samples,
    path: str | PathLike[str],
    vocabulary: LabelVocabulary | None = None,
    *,
    subjects: str = "tsv",
) -> None:
    """Write a corpus that Annif reads: `.tsv`, `.csv`, `.jsonl` (also with `.gz`), or a folder.

    Labels are written as the URIs that `vocabulary` has for them, or as they are if they look like
    URIs. In TSV, line ends and tabs inside a text become spaces. In a folder, each text is a
    `.txt` file, and `subjects` says where its labels go: "tsv" for URIs and names, "key" for names
    only.
    """
    place = fspath(path)
    name = place.lower().removesuffix(".gz")
    if os.path.isdir(place) or not os.path.splitext(name)[1]:
        folders.write_folder(samples, Path(place), vocabulary, subjects)
        return
    if not name.endswith((".tsv", ".csv", ".jsonl")):
        raise DataFormatError(
            f"{place} does not end like a corpus of Annif: use .tsv, .csv, .jsonl, each also with "
            ".gz, or a folder, whose name has no ending"
        )
    with open_sink(place) as file:
        files.write(samples, file, vocabulary, files.kind_of(place))


def write_annif_vocabulary(vocabulary: LabelVocabulary, path: str | PathLike[str]) -> None:
    """Write a vocabulary as TSV that `annif load-vocab` reads: `<uri>`, a name, a notation.

    TSV has no alternative names and broader labels; Annif reads these from SKOS.
    """
    writer = SubjectWriter(vocabulary)
    with open_sink(path) as file:
        for i, concept in enumerate(vocabulary.values()):
            cells = [f"<{writer.uri(concept.label, i)}>", writer.name(concept.label)]
            cells += [concept.notation] if concept.notation else []
            if any(set(cell) & set("\t\r\n") for cell in cells):
                raise DataFormatError(
                    f"the label {concept.label!r:.80} has a tab or a line end in its name, which a "
                    "TSV file cannot hold"
                )
            file.write(("\t".join(cells) + "\n").encode())
