# ruff: noqa: RUF001 (letters of other alphabets)
"""Languages with a Snowball stemmer, and which of them a text is written in."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.errors import ParameterError
from umpteen.kernels.hashing import places
from umpteen.text.reading import Table, hash_words, read, table, utf8

_FEWEST = 0.08  # share of function words in a text of a language
_FEWEST_WORDS = 2
_OFTEN = 0.05  # share of texts in a language for it to be one of a mixed corpus
_MOST_ASKED = 2_000  # texts that decide about the languages of a corpus

# ISO 639-1 code: the name of the stemmer, and frequent words that hardly mean anything.
_LANGUAGES: dict[str, tuple[str, str]] = {
    "ar": (
        "arabic",
        "في من على إلى عن أن التي الذي هذا هذه ما لا كان مع أو بعد كل ذلك بين هو",
    ),
    "ca": (
        "catalan",
        "de la el i que a les en els per un amb del una no és al es dels són com més",
    ),
    "cs": (
        "czech",
        "a v na se je že s z do o to i k pro ve jako za by od po které jsou při podle",
    ),
    "da": (
        "danish",
        "og i at det er en til af på for med de der den som ikke et har om fra ved",
    ),
    "de": (
        "german",
        "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als "
        "auch es an werden aus er hat dass sie nach wird bei wie oder zur zum",
    ),
    "el": (
        "greek",
        "και το της να του η την των ο με που για από τα τους είναι στην σε ότι στο",
    ),
    "en": (
        "english",
        "the of and to in a is that for it as was with be by on not he his but at are this "
        "have from or which you an they were how do can what i my",
    ),
    "eo": (
        "esperanto",
        "la de kaj en al estas ke por kun ne li ili per sur ĉi kiel tiu kiu pri",
    ),
    "es": (
        "spanish",
        "de la que el en y a los se del las un por con no una su para es al lo como más o "
        "pero sus le ha",
    ),
    "et": (
        "estonian",
        "ja on ei et kui see ta oli ka aga oma nii mis kes ning seda välja siis või",
    ),
    "eu": (
        "basque",
        "eta da ez ere bat du dira dute zen hau izan zuen hori baina edo beste dela",
    ),
    "fa": (
        "persian",
        "و در به از که این را با است برای آن یک خود تا بر هم نیز می های شد",
    ),
    "fi": (
        "finnish",
        "ja on ei että oli se hän mutta ovat kun myös joka tai mitä onko kuin niin sen jos "
        "siitä ole mistä mikä olisi sekä voi miten kuka",
    ),
    "fr": (
        "french",
        "de la le et les des en un du une que est pour qui dans par plus pas au sur ne se il "
        "ce avec sont aux ou cette",
    ),
    "ga": (
        "irish",
        "an na agus ar i a is go le ag do sé sí bhí tá as leis chun atá ach seo sin",
    ),
    "hi": (
        "hindi",
        "के का की में है और से को पर यह एक ने हैं कि भी लिए था नहीं तो हो",
    ),
    "hu": (
        "hungarian",
        "a az és hogy nem is egy ez meg volt csak de ha már vagy mint még azt kell",
    ),
    "hy": (
        "armenian",
        "և է են որ մի իր այս այդ հետ համար եւ մեջ չի էր նա որը ինչ մասին",
    ),
    "id": (
        "indonesian",
        "yang dan di ke dari untuk dengan pada ini itu dalam tidak akan oleh adalah",
    ),
    "it": (
        "italian",
        "di e il la che in a per un del della dei delle con le è una i si da non al lo gli "
        "nel alla sono dell ed",
    ),
    "lt": (
        "lithuanian",
        "ir kad yra į su iš tai ne o bet kaip buvo apie nuo dėl po jo ar už prie",
    ),
    "ne": (
        "nepali",
        "छ र को मा पनि ले यो हो गर्न भएको लागि त्यो छन् थियो एक गरेको",
    ),
    "nl": (
        "dutch",
        "de en van het een in is dat op te met voor niet die zijn aan er als ook bij of door "
        "naar uit om",
    ),
    "no": (
        "norwegian",
        "og i det er på som en til av for at med de ikke har et om fra ble ved å",
    ),
    "pl": (
        "polish",
        "i w na z się do że nie jest o to od po jak za dla przez oraz ale są co jego",
    ),
    "pt": (
        "portuguese",
        "de a o que e do da em um para com não uma os no se na por mais as dos ao das à são",
    ),
    "ro": (
        "romanian",
        "de și în a la cu pe care din un nu o este că să pentru mai sau sunt prin",
    ),
    "ru": (
        "russian",
        "и в не на что с по как он это из но для от за его так же к при или бы у",
    ),
    "sr": (
        "serbian",
        "и у је да се на за од са су не о као то који u je da se na za od su ne koji",
    ),
    "st": (
        "sesotho",
        "le ho ya ba ka ke e o ha tsa wa hore mo ea tse ntho bane",
    ),
    "sv": (
        "swedish",
        "och i att det som en på är av för med till den har de inte ett om från vid",
    ),
    "ta": (
        "tamil",
        "ஒரு மற்றும் என்று இந்த என அது அந்த இது உள்ள போன்ற என்ற வேண்டும் இல்லை",
    ),
    "tr": (
        "turkish",
        "ve bir bu da de için ile çok olarak ne daha olan gibi ama en var sonra kadar",
    ),
    "yi": (
        "yiddish",
        "און איז די אין פון צו דער דאס ער מיט אויף האט נישט וואס אז זיי",
    ),
}

CODES = tuple(sorted(_LANGUAGES))

# Languages that do not separate words, by the first and the last letter of their script.
_SCRIPTS = {
    "ja": (0x3041, 0x309F),
    "km": (0x1780, 0x17FF),
    "lo": (0x0E81, 0x0EFF),
    "my": (0x1000, 0x109F),
    "th": (0x0E01, 0x0E7F),
    "zh": (0x4E00, 0x9FFF),
}
UNSPACED = tuple(_SCRIPTS)
_HIRAGANA = 0.05  # share of letters in Japanese texts, which otherwise look Chinese
_MOST_CHARACTERS = 1_000  # of a text


def stemmer_name(language: str) -> str:
    """Return the name of Snowball's stemmer of a language, by its ISO 639-1 code.

    >>> stemmer_name("fi")
    'finnish'
    """
    if language not in _LANGUAGES:
        meant = [code for code, (name, _) in _LANGUAGES.items() if name == language.lower()]
        hint = f"; did you mean {meant[0]!r}?" if meant else ""
        raise ParameterError(
            f"language={language!r} has no stemmer; expected one of "
            f"{', '.join(sorted({*CODES, *UNSPACED}))}, 'auto', or None to leave words as they are"
            f"{hint}"
        )
    return _LANGUAGES[language][0]


def check_language(language: str | None) -> None:
    """Raise an error unless a language is known, or it is "auto" or None."""
    if language is not None and language not in ("auto", *UNSPACED):
        stemmer_name(language)


def languages_of(texts: list[str]) -> list[str | None]:
    """Return the language of each text, None if its function words do not tell, or tell of two.

    >>> languages_of(["It is not that cold in the house", "Es ist nicht kalt im Haus", "pytest"])
    ['en', 'de', None]
    """
    found = _numbers_of(texts)
    return [None if number < 0 else CODES[number] for number in found.tolist()]


def main_languages(texts: Sequence[str]) -> list[str]:
    """Return the languages of a corpus, the most frequent first: those of a twentieth of its texts.

    At most 2,000 texts are looked at, evenly spaced. The list is empty if hardly any text has
    function words of one language.

    >>> main_languages(["the cat is on the mat", "die Katze ist auf der Matte"])
    ['de', 'en']
    """
    step = -(-len(texts) // _MOST_ASKED) or 1
    found = _numbers_of(list(texts[::step]))
    counts = np.bincount(found[found >= 0], minlength=len(CODES))
    order = np.argsort(-counts, kind="stable")
    return [CODES[i] for i in order if counts[i] > _OFTEN * max(len(found), 1)]


def unspaced_language(texts: Sequence[str]) -> str | None:
    """Return the language of a corpus whose scripts mostly do not separate words, else None.

    >>> unspaced_language(["我喜欢北京", "新しい本"]), unspaced_language(["北京 is Beijing"])
    ('ja', None)
    """
    step = -(-len(texts) // _MOST_ASKED) or 1
    letters = "".join(filter(str.isalpha, "".join(t[:_MOST_CHARACTERS] for t in texts[::step])))
    codes = np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), np.uint32)
    counts = {
        language: int(((codes >= first) & (codes <= last)).sum())
        for language, (first, last) in _SCRIPTS.items()
    }
    if 2 * sum(counts.values()) <= len(codes):
        return None
    is_japanese = counts["ja"] > _HIRAGANA * (counts["ja"] + counts["zh"])
    best = max(counts, key=counts.__getitem__)
    return "ja" if best == "zh" and is_japanese else best


def _numbers_of(texts: list[str]) -> npt.NDArray[np.int64]:
    if not texts:
        return np.zeros(0, np.int64)
    table, lists = _function_words()
    words, _, _, _, ends = read(utf8(texts))
    rows = np.ones(len(words), np.int64), places(words, *table) + 1, np.append(0, ends)
    counts = csr_matrix(rows, shape=(len(texts), len(lists))) @ lists
    best = np.argmax(counts, axis=1)
    most = counts[np.arange(len(texts)), best]
    is_clear = (most >= _FEWEST_WORDS) & (most >= _FEWEST * np.diff(ends, prepend=0))
    is_clear &= (counts == most[:, None]).sum(axis=1) == 1
    return np.where(is_clear, best, -1)


@cache
def _function_words() -> tuple[Table, npt.NDArray[np.int64]]:
    """Hashes of the function words of all languages; row i + 1 has a 1 for each language of i."""
    of_language = [hash_words(words.split()) for _, words in map(_LANGUAGES.__getitem__, CODES)]
    keys = np.unique(np.concatenate(of_language))
    lists = np.zeros((1 + len(keys), len(CODES)), np.int64)
    for number, hashes in enumerate(of_language):
        lists[1 + np.searchsorted(keys, hashes), number] = 1
    return table(keys), lists
