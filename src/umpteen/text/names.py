"""Names of labels as words."""

import re

_BORDERS = re.compile(
    r"[\W_]+"  # dots, hyphens, underscores, spaces
    r"|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"  # letters and digits
    r"|(?<=[a-z\u00df-\u00f6\u00f8-\u00ff])(?=[A-Z\u00c0-\u00d6\u00d8-\u00de])"  # camelCase
    r"|(?<=[A-Z])(?=[A-Z][a-z])"  # HTMLParser
)


def words_of_name(name: str) -> str:
    """Return the words of a name, which may be written in camel case or with dots and the like.

    >>> words_of_name("sklearn.preprocessing.LabelBinarizer"), words_of_name("uses::HTMLParser2")
    ('sklearn preprocessing Label Binarizer', 'uses HTML Parser 2')
    """
    return " ".join(filter(None, _BORDERS.split(name)))
