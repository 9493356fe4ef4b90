"""Data: data sets by name, made up, or read from files; labels per group of samples."""

from umpteen.data.dataset import Dataset
from umpteen.data.formats import read, read_label_texts, stream, write
from umpteen.data.formats.annif import read_annif, write_annif, write_annif_vocabulary
from umpteen.data.group_labels import labels_of_groups
from umpteen.data.grouping import aggregate, group_by_clusters, group_randomly
from umpteen.data.image_files import read_image_folder
from umpteen.data.label_vocabulary import Concept, LabelVocabulary
from umpteen.data.loading import load, names
from umpteen.data.samples import Samples
from umpteen.data.shards import read_shards
from umpteen.data.synthetic import make_extreme
from umpteen.data.vocabularies import read_vocabulary
from umpteen.scratch import scratch

__all__ = [
    "Concept",
    "Dataset",
    "LabelVocabulary",
    "Samples",
    "aggregate",
    "group_by_clusters",
    "group_randomly",
    "labels_of_groups",
    "load",
    "make_extreme",
    "names",
    "read",
    "read_annif",
    "read_image_folder",
    "read_label_texts",
    "read_shards",
    "read_vocabulary",
    "scratch",
    "stream",
    "write",
    "write_annif",
    "write_annif_vocabulary",
]
