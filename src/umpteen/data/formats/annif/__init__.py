"""Corpora of Annif: files of documents with the URIs of their subjects, and folders of such."""

from umpteen.data.formats.annif.corpora import read_annif, write_annif, write_annif_vocabulary
from umpteen.data.formats.annif.files import stream, write
from umpteen.data.formats.annif.folders import is_folder, stream_folder

__all__ = [
    "is_folder",
    "read_annif",
    "stream",
    "stream_folder",
    "write",
    "write_annif",
    "write_annif_vocabulary",
]
