"""`umpteen explain`."""

from dataclasses import replace
from typing import Annotated

import typer

from umpteen.cli.errors import UsageError
from umpteen.cli.models import Model, Verify, load_tagger
from umpteen.cli.output import Json, one_line, show
from umpteen.cli.reading import Stdin

_WIDEST = 60  # with its quotation marks, as explanations show training texts


def explain(
    model: Model,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - for stdin.")],
    label: Annotated[
        str | None,
        typer.Option(
            "-l", "--label", metavar="NAME", help="Label to explain; by default, the best one."
        ),
    ] = None,
    verify: Verify = None,
    json: Json = None,
) -> None:
    """Show why a text gets a label, word by word.

    \b
    Examples:
      umpteen explain model/ "Why does my bread collapse?"
      umpteen explain model/ "Why does my bread collapse?" --label baking
    \b
    The output has the label's probability, what each word adds to its score, and the path through
    the label tree; and similar training texts, if the model was fitted with --keep-texts.
    """
    tagger = load_tagger(model, "explain", verify=verify)
    if text == "-":
        text = _all_of_stdin()
    if not text.strip():
        raise UsageError('there is no text to explain: umpteen explain MODEL "some words"')
    found = tagger.explain(text, label)
    near = tuple(replace(one, text=_shortened(one.text)) for one in found.neighbours)
    show(found.to_dict(), json, replace(found, neighbours=near))


def _all_of_stdin() -> str:
    from umpteen.limits import limit_advice, max_line_bytes

    most, stdin = max_line_bytes(), Stdin()
    read = bytearray()
    while part := stdin.read(most):
        read += part
        if len(read) > most:
            raise UsageError(f"the text of stdin is {limit_advice()}")
    return read.decode(errors="replace")


def _shortened(text: str) -> str:
    """As much of a text as a line has room for.

    >>> _shortened("short"), _shortened("long " * 20)
    ('short', 'long long long long long long long long long long long lo…')
    """
    text = one_line(text)
    if len(repr(text)) <= _WIDEST:
        return text
    fitting = (text[:n] + "…" for n in range(_WIDEST, -1, -1))
    return next(one for one in fitting if len(repr(one)) <= _WIDEST)
