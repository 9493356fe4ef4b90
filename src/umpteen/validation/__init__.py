"""The only place that checks inputs.

People have CSR, CSC and COO matrices or arrays of any number type, numpy arrays, lists of label
ids. All of it becomes canonical 32-bit CSR (or a C-ordered float32 array) here, before a kernel
sees it; what was passed in is never modified.
"""

from umpteen.validation.features import (
    Features,
    as_csr,
    check_describes,
    check_features,
    unit_rows,
)
from umpteen.validation.groups import check_group_labels, check_groups
from umpteen.validation.hierarchy import check_parents, cyclic
from umpteen.validation.labels import (
    check_asked_labels,
    check_label,
    check_labels,
    is_single_label,
)
from umpteen.validation.named_groups import NamedGroups, check_named_groups
from umpteen.validation.parameters import (
    N_JOBS,
    VERBOSE,
    check_count,
    check_k,
    check_number,
    check_parameters,
    check_rows,
    check_seed,
    check_settings,
)
from umpteen.validation.texts import (
    check_label_lists,
    check_label_texts,
    check_names,
    check_text,
    check_texts,
    is_written_list,
)

__all__ = [
    "N_JOBS",
    "VERBOSE",
    "Features",
    "NamedGroups",
    "as_csr",
    "check_asked_labels",
    "check_count",
    "check_describes",
    "check_features",
    "check_group_labels",
    "check_groups",
    "check_k",
    "check_label",
    "check_label_lists",
    "check_label_texts",
    "check_labels",
    "check_named_groups",
    "check_names",
    "check_number",
    "check_parameters",
    "check_parents",
    "check_rows",
    "check_seed",
    "check_settings",
    "check_text",
    "check_texts",
    "cyclic",
    "is_single_label",
    "is_written_list",
    "unit_rows",
]
