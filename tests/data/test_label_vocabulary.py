"""If these fail, a thesaurus gives labels the wrong names or parents, or a bad file does harm."""

import gzip
import json
import lzma
import socket
import warnings
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.data import Concept, LabelVocabulary, read_vocabulary
from umpteen.data.label_vocabulary import _closing_links
from umpteen.errors import (
    DataFormatError,
    DatasetNotFoundError,
    LabelsError,
    MissingExtraError,
    ModelCorruptError,
    ParameterError,
    UmpteenError,
)
from umpteen.validation import cyclic

rdflib = pytest.importorskip("rdflib", reason="needs umpteen[skos]")

SKOS = rdflib.Namespace("http://www.w3.org/2004/02/skos/core#")
EX = "http://example.org/onto/"
PREFIXES = f"@prefix skos: <{SKOS}> .\n@prefix owl: <http://www.w3.org/2002/07/owl#> .\n" \
           f"@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .\n@prefix e: <{EX}> .\n"  # fmt: skip
XML = (
    '<?xml version="1.0"?>\n{doctype}<rdf:RDF '
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    f'xmlns:skos="{SKOS}">\n'
    '<skos:Concept rdf:about="http://example.org/onto/c1">'
    '<skos:prefLabel xml:lang="en">{name}</skos:prefLabel></skos:Concept>\n</rdf:RDF>\n'
)


def turtle(text, language=None):
    return read_vocabulary(BytesIO((PREFIXES + text).encode()), language)


def names(vocabulary):
    return {label.removeprefix(EX): each for label, each in vocabulary.names().items()}


# --- What was written comes back ---------------------------------------------------------------

characters = st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs"))
words = st.text(characters, min_size=1, max_size=8)


@st.composite
def concepts(draw, described=True):
    ids = draw(st.lists(st.integers(0, 50), min_size=1, max_size=6, unique=True))
    found = []
    for place, i in enumerate(ids):
        name = draw(words)
        others = draw(st.lists(words, max_size=3, unique=True)) if described else []
        above = draw(st.lists(st.sampled_from(ids[:place]), unique=True)) if place else []
        found.append(
            Concept(
                f"{EX}{i}",
                name,
                tuple(sorted(each for each in others if each != name)),
                draw(words) if described and draw(st.booleans()) else "",
                tuple(f"{EX}{ids[j]}" for j in sorted(ids.index(a) for a in above) if described),
                f"{EX}{i}",
                draw(st.sampled_from(["", f"0{i}", "1.50"])),
            )
        )
    return found


@given(concepts(described=False))
def test_tables_come_back(written):
    rows = [f"<{each.uri}>\t{each.name}\t{each.notation}\r\n" for each in written]
    found = read_vocabulary(BytesIO("".join(rows).encode()))
    assert list(found.values()) == written


@given(concepts())
def test_json_lines_come_back(written):
    lines = [
        json.dumps({"label": each.label, "name": each.name, "alternatives": each.alternatives,
                    "text": each.text, "parents": each.broader, "notation": each.notation})
        for each in written
    ]  # fmt: skip
    assert list(read_vocabulary(BytesIO("\n".join(lines).encode())).values()) == written


@settings(max_examples=40)
@given(concepts(), st.sampled_from(["turtle", "xml", "nt"]), st.booleans())
def test_skos_comes_back_from_every_syntax(written, syntax, downwards):
    graph = rdflib.Graph()
    for each in written:
        uri = rdflib.URIRef(each.uri)
        graph.add((uri, rdflib.RDF.type, SKOS.Concept))
        graph.add((uri, SKOS.prefLabel, rdflib.Literal(each.name, lang="fi")))
        graph.add((uri, SKOS.prefLabel, rdflib.Literal("other", lang="sv")))
        for i, name in enumerate(each.alternatives):
            kind = SKOS.hiddenLabel if i else SKOS.altLabel
            graph.add((uri, kind, rdflib.Literal(name, lang="fi")))
        if each.text:
            graph.add((uri, SKOS.definition, rdflib.Literal(each.text, lang="fi")))
        if each.notation:
            graph.add((uri, SKOS.notation, rdflib.Literal(each.notation)))
        for above in map(rdflib.URIRef, each.broader):
            graph.add((above, SKOS.narrower, uri) if downwards else (uri, SKOS.broader, above))
    file = BytesIO(graph.serialize(format=syntax, encoding="utf-8"))
    file.name = {"turtle": "a.skos.ttl", "xml": "a.rdf", "nt": "a.nt"}[syntax]
    found = read_vocabulary(file, "fi")
    assert found.keys() == {each.label for each in written}
    for each in written:
        read = found[each.label]
        assert (read.name, read.text, read.notation) == (each.name, each.text, each.notation)
        assert sorted(read.alternatives) == list(each.alternatives)
        assert set(read.broader) == set(each.broader)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize(
    ("content", "label"),
    [
        (f"<{EX}1>\tdog\n", f"{EX}1"),
        (f"\ufeffuri;label_en\n{EX}1;dog\n", f"{EX}1"),
        (f'<{EX}1> <{SKOS}prefLabel> "dog"@en .\n', f"{EX}1"),
        (f'# a thesaurus\nPREFIX s: <{SKOS}>\n<{EX}1> s:prefLabel "dog"@en .', f"{EX}1"),
        (XML.format(doctype="", name="dog"), f"{EX}c1"),
        ('[{"label": 1, "name": "dog"}]', "1"),
    ],
)
def test_content_tells_the_format_compressed_or_not(content, label, pack):
    for file in (content.encode(), pack(content.encode())):
        assert read_vocabulary(BytesIO(file)).names() == {label: ("dog",)}


def test_eurlex_texts_are_texts_or_names(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"label": "a", "text": "loan;  long loan; loan"}\n{"label": "b", "text": ""}')
    assert read_vocabulary(path)["a"] == Concept("a", text="loan;  long loan; loan")
    assert read_vocabulary(path).texts() == um.data.read_label_texts(path)
    assert read_vocabulary(path, name_separator=";").names() == {
        "a": ("loan", "long loan"),
        "b": (),
    }
    with pytest.raises(ParameterError, match="name_separator"):
        read_vocabulary(path, name_separator="")


# --- Languages -----------------------------------------------------------------------------------

ANIMALS = """
e:dog a skos:Concept ; skos:prefLabel "dog"@en, "koira"@fi, "cachorro"@pt-BR, "cão"@pt-PT ;
  skos:altLabel "hound"@en, "hurtta"@fi, "perro"@es, "Canis" ;
  skos:definition "It barks"@en ; skos:scopeNote "Ei susi"@fi .
e:cat a skos:Concept ; skos:prefLabel "kissa"@fi ; skos:altLabel "cat"@en .
e:cow a skos:Concept ; skos:prefLabel "cow"@en, "lehmä"@fi, "vaca"@pt-br .
"""


def test_without_a_language_the_most_frequent_is_taken():
    found = turtle(ANIMALS)
    assert names(found) == {
        "dog": ("koira", "hurtta", "Canis"), "cat": ("kissa",), "cow": ("lehmä",),
    }  # fmt: skip
    assert found[f"{EX}dog"].text == "Ei susi"


def test_a_language_is_chosen_and_others_fill_in_only_for_the_name():
    found = turtle(ANIMALS, "EN")
    assert names(found) == {
        "dog": ("dog", "hound", "Canis"), "cat": ("kissa", "cat"), "cow": ("cow",),
    }  # fmt: skip
    assert found[f"{EX}dog"].text == "It barks"


@pytest.mark.parametrize("language", ["pt", "pt-BR", "pt_br", "pt-BR-x-rio"])
def test_a_language_finds_its_regions_and_a_region_its_language(language):
    assert turtle(ANIMALS, language)[f"{EX}dog"].name == "cachorro"
    assert turtle('e:a skos:prefLabel "um"@pt .', "pt-BR")[f"{EX}a"].name == "um"


def test_the_prefix_of_a_tag_is_no_language():
    with pytest.raises(ParameterError, match=r"'f'.*fi \(3 names\).*en \(2 names\)"):
        turtle(ANIMALS, "f")


def test_names_without_a_language_serve_every_language():
    assert turtle('e:a skos:prefLabel "ant" .', "fi")[f"{EX}a"].name == "ant"
    assert turtle('e:a skos:prefLabel "ant", "muurahainen"@fi .', "fi")[f"{EX}a"].names == (
        "muurahainen", "ant",
    )  # fmt: skip


def test_columns_of_languages():
    file = f"uri,label_en,label_pt-BR,notation\n{EX}1,dog,,07\n<{EX}2>,,gato,\n{EX}3,,,\n"
    found = read_vocabulary(BytesIO(file.encode()), "pt")
    assert list(found.values()) == [
        Concept(f"{EX}1", "dog", uri=f"{EX}1", notation="07"),
        Concept(f"{EX}2", "gato", uri=f"{EX}2"),
    ]


# --- What SKOS means -----------------------------------------------------------------------------


def test_deprecated_concepts_collections_and_blank_nodes_are_left_out():
    found = turtle(
        'e:a a skos:Concept ; skos:prefLabel "a"@en ; skos:broader e:old .'
        'e:old a skos:Concept ; skos:prefLabel "old"@en ; owl:deprecated true .'
        'e:kept a skos:Concept ; skos:prefLabel "kept"@en ; owl:deprecated false .'
        'e:all a skos:Collection ; skos:prefLabel "all"@en . e:none a skos:Concept .'
        '[] a skos:Concept ; skos:prefLabel "blank"@en .'
    )
    assert names(found) == {"a": ("a",), "kept": ("kept",)}
    assert found[f"{EX}a"].broader == ()


def test_names_may_be_nodes_and_rdfs_labels():
    found = turtle(
        'e:a a skos:Concept ; xl:prefLabel e:l ; xl:altLabel [ xl:literalForm "b"@en ] .'
        'e:l xl:literalForm "a\n  c"@en .'
        'e:r a skos:Concept ; <http://www.w3.org/2000/01/rdf-schema#label> "r"@en .'.replace(
            "\n", "\\n"
        )
    )
    assert names(found) == {"a": ("a c", "b"), "r": ("r",)}


def test_numbers_stay_as_they_are_written_and_settings_are_given_back():
    before = rdflib.NORMALIZE_LITERALS
    xsd = "http://www.w3.org/2001/XMLSchema#"
    text = f'skos:prefLabel "a"@en ; skos:notation "007"^^<{xsd}integer> .'
    assert turtle(f"e:a {text}")[f"{EX}a"].notation == "007"
    bomb = text.replace("007", "1e999999999").replace("integer", "decimal")
    assert turtle(f"e:a {bomb}")[f"{EX}a"].notation == "1e999999999"
    with pytest.raises(DataFormatError):
        turtle("nonsense")
    assert before == rdflib.NORMALIZE_LITERALS


def test_relative_uris_do_not_name_this_machine():
    (label,) = turtle('<a> skos:prefLabel "a"@en .')
    assert label == "https://vocabulary.invalid/a"


# --- Files that are broken, or meant to break something ------------------------------------------

LAUGHS = '<!DOCTYPE rdf:RDF [<!ENTITY a "ha">\n' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">\n' for i in range(9)
) + "]>\n"  # fmt: skip


@pytest.mark.parametrize(
    ("doctype", "name"),
    [
        (LAUGHS, "&j;"),
        (f'<!DOCTYPE rdf:RDF [<!ENTITY a "{"x" * 10_000}">]>\n', "&a;" * 1000),
        ('<!DOCTYPE rdf:RDF [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n', "&a;"),
        ('<!DOCTYPE rdf:RDF [<!ENTITY a SYSTEM "http://192.0.2.1/a">]>\n', "&a;"),
        ('<!DOCTYPE rdf:RDF [<!ENTITY % a SYSTEM "http://192.0.2.1/a"> %a;]>\n', "x"),
        ('<!DOCTYPE rdf:RDF [<!ENTITY a "&#38;b;"><!ENTITY b "x">]>\n', "&a;"),
    ],
)
def test_entities_that_could_do_harm_are_refused(doctype, name, monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("asked the network"))
    with pytest.raises(DataFormatError, match=r"line \d.*entity"):
        read_vocabulary(BytesIO(XML.format(doctype=doctype, name=name).encode()))


def test_entities_for_namespaces_are_common_and_read():
    doctype = '<!DOCTYPE rdf:RDF SYSTEM "http://192.0.2.1/a.dtd" [<!ENTITY dog "dog">]>\n'
    found = read_vocabulary(BytesIO(XML.format(doctype=doctype, name="a &dog;").encode()))
    assert names(found) == {"c1": ("a dog",)}


LONG = "x" * 3_000
CONCEPT = '<skos:Concept rdf:about="c1"><skos:prefLabel>dog</skos:prefLabel></skos:Concept>'


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [
        ("ttl", f'@prefix l: <http://{LONG}> . l:a skos:prefLabel "a" .', "a URI has 3,008 char"),
        ("ttl", f'@base <http://{LONG}/> . <a> skos:prefLabel "a" .', "a URI has 3,009 char"),
        ("ttl", f'@prefix l: <http://{LONG}> . e:a skos:broader l:b .', "a URI has 3,008 char"),
        ("rdf", f'<rdf:RDF xml:base="http://{LONG}/" {{}}>{CONCEPT}</rdf:RDF>', "a URI has 3,"),
        ("rdf", f'<!DOCTYPE r [<!ATTLIST c skos:prefLabel CDATA "{LONG}">]><rdf:RDF {{}}/>',
         r"line 1.*the attribute 'skos:prefLabel' has a long default"),
    ],
)  # fmt: skip
def test_a_short_file_does_not_become_a_large_vocabulary(tmp_path, ending, content, message):
    file = tmp_path / f"v.{ending}"
    spaces = f'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="{SKOS}"'
    file.write_text(PREFIXES + content if ending == "ttl" else content.format(spaces))
    with pytest.raises(DataFormatError, match=message):
        read_vocabulary(file)


def test_long_uris_that_nobody_needs_are_passed_over():
    found = turtle(f'e:a skos:prefLabel "a"@en ; e:picture <data:image/png;base64,{LONG}> .')
    assert names(found) == {"a": ("a",)}


@pytest.mark.parametrize("encoding", ["iso-8859-1", "Windows-1252", "utf-16", "utf-8"])
@pytest.mark.parametrize("doctype", ["", '<!DOCTYPE rdf:RDF [<!ENTITY e "é">]>\n'])
def test_xml_is_read_in_the_encoding_that_it_declares(encoding, doctype):
    content = XML.format(doctype=doctype, name="café" if not doctype else "caf&e;")
    content = content.replace('"1.0"', f'"1.0" encoding="{encoding}"')
    file = BytesIO(content.encode(encoding))
    file.name = "v.rdf"
    assert names(read_vocabulary(file)) == {"c1": ("café",)}


@pytest.mark.parametrize("encoding", ["punycode", "ebcdic-x", "iso-8859-99"])
def test_other_encodings_are_refused(encoding):
    content = XML.format(doctype="", name="a").replace('"1.0"', f'"1.0" encoding="{encoding}"')
    with pytest.raises(DataFormatError, match=f"{encoding}.*save it as UTF-8"):
        read_vocabulary(BytesIO(content.encode()))


def test_nothing_that_a_file_refers_to_is_fetched(monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("asked the network"))
    found = turtle(
        '@base <http://192.0.2.1/> . <> owl:imports <more.ttl> . '
        'e:a skos:prefLabel "a"@en ; skos:inScheme <http://192.0.2.1/s> .'
    )  # fmt: skip
    assert list(names(found).values()) == [("a",)]


ENDINGS = ["ttl", "rdf", "nt", "tsv", "csv", "jsonl", "txt"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\x00\xff\xfe\x80" * 50, b"PK\x03\x04 a zip", b"nothing here"]
)
def test_files_that_are_no_vocabulary_are_refused(tmp_path, ending, content):
    path = tmp_path / f"file.{ending}"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=r"file\."):
        read_vocabulary(path)


@settings(max_examples=150)
@given(st.sampled_from(ENDINGS), st.data())
def test_damaged_files_are_read_or_refused(ending, data):
    whole = {
        "ttl": PREFIXES + ANIMALS,
        "rdf": XML.format(doctype='<!DOCTYPE r [<!ENTITY a "b">]>', name="&a;"),
        "nt": f'<{EX}1> <{SKOS}prefLabel> "d\\u00f6g"@en .\n' * 2,
        "tsv": f"<{EX}1>\tdog\t7\n<{EX}2>\tcat\n",
        "csv": f'uri,label_en,notation\n{EX}1,"dog, big",7\n',
        "jsonl": '{"label": "a", "alternatives": ["b"], "parents": ["c"]}\n',
        "txt": PREFIXES + ANIMALS,
    }[ending].encode()
    place = data.draw(st.integers(0, len(whole)))
    change = data.draw(st.binary(max_size=6) | st.sampled_from([b"\\ud800", b"\n", b'"', b"<"]))
    file = BytesIO(whole[:place] + change + whole[place + data.draw(st.integers(0, 30)) :])
    file.name = f"file.{ending}"
    try:
        found = read_vocabulary(file)
    except UmpteenError:
        return
    assert all(text.encode() for text in found.texts().values() if text)


@pytest.mark.parametrize(
    ("ending", "content", "line"),
    [
        ("ttl", f'{PREFIXES}e:a skos:prefLabel "a"@en\n e:b .', 6),
        ("nt", f'<{EX}1> <{SKOS}prefLabel> "a"@en .\n\n<{EX}1> oops .', 3),
        ("rdf", XML.format(doctype="", name="a <b>"), 3),
        ("rdf", XML.format(doctype="", name="a").replace("rdf:about", "rdf:bagID"), 3),
        ("tsv", "<a>\ta\n<b>\tb\n<a>\tc", 3),
        ("tsv", "<a>\ta\nno tab", 2),
        ("tsv", "<a>\ta\n<>\tb", 2),
        ("csv", "uri,label_en\na,b,c", 2),
        ("csv", "uri,label_en,label_en\na,b,c", 1),
        ("csv", "name,code\na,b", 1),
        ("jsonl", '{"label": "a"}\n{"label": "a"}', 2),
        ("jsonl", '{"label": "a", "parents": {"b": 1}}', 1),
        ("jsonl", '{"label": "a", "name": ["b"]}', 1),
        ("jsonl", '{"text": "b"}', 1),
    ],
)
def test_an_error_names_the_line(ending, content, line):
    file = BytesIO(content.encode())
    file.name = f"file.{ending}"
    with pytest.raises(DataFormatError, match=rf"line {line} "):
        read_vocabulary(file)


def test_deep_nesting_ends_in_an_error():
    with pytest.raises(DataFormatError, match="deep"):
        turtle("e:a skos:broader " + "[ skos:broader " * 100_000)
    with pytest.raises(DatasetNotFoundError):
        read_vocabulary("nowhere.ttl")


def test_too_much_rdf_is_refused_before_memory_is_full(monkeypatch):
    monkeypatch.setattr("umpteen.data.vocabularies.skos._LARGEST", 1000)
    with pytest.raises(DataFormatError, match="too much"):
        turtle("#" * 1000)


def test_without_rdflib_the_advice_is_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rdflib", None)
    with pytest.raises(MissingExtraError, match=r"umpteen\[skos\]"):
        turtle(ANIMALS)


# --- The vocabulary -------------------------------------------------------------------------------

PETS = LabelVocabulary.of(
    [
        Concept(f"{EX}c1", "Animal", uri=f"{EX}c1", notation="59"),
        Concept(f"{EX}c2", "Dog", ("hound",), "It barks", (f"{EX}c1", "gone"), f"{EX}c2", "59.1"),
        Concept(f"{EX}c3", "dog", (), "", (f"{EX}c1",), f"{EX}c3"),
    ]
)


def test_it_is_a_mapping():
    assert len(PETS) == 3
    assert list(PETS) == [f"{EX}c1", f"{EX}c2", f"{EX}c3"]
    assert PETS[f"{EX}c2"].broader == (f"{EX}c1",)
    assert "c1" not in PETS
    assert PETS.get("c1") is None
    assert PETS.get(f"{EX}c1").name == "Animal"
    assert LabelVocabulary.of(PETS.values()) == PETS
    assert LabelVocabulary.of([Concept("a")]) != PETS
    assert repr(LabelVocabulary.of([])) == "LabelVocabulary of 0 labels: "
    with pytest.raises(LabelsError, match=f"did you mean '{EX}c1'"):
        PETS[f"{EX}c1 "]
    with pytest.raises(LabelsError, match="'a'"):
        LabelVocabulary.of([Concept("a"), Concept("b"), Concept("a")])
    with pytest.raises(LabelsError, match="''"):
        LabelVocabulary.of([Concept("")])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([f"{EX}c1"], [f"{EX}c1", f"{EX}c2", f"{EX}c3"]),
        ([f"<{EX}c1>"], [f"<{EX}c1>", f"<{EX}c2>", f"<{EX}c3>"]),
        (["59.1", "other"], ["59", "59.1", f"{EX}c3"]),
        (["c2", "c3", "59"], ["c1", "c2", "c3"]),
        (["dog", "Dog"], ["Animal", "Dog", "dog"]),
        (["ANIMAL", "DOG"], ["ANIMAL", "DOG", "dog"]),
        (["dOG", "animal"], ["animal", "dOG", "dog"]),
        ([], [f"{EX}c1", f"{EX}c2", f"{EX}c3"]),
    ],
)
def test_labels_are_written_as_in_training_data(labels, expected):
    found = PETS.matching(labels)
    assert list(found) == expected
    assert [each.name for each in found.values()] == ["Animal", "Dog", "dog"]
    assert found[expected[1]].broader == (expected[0],)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"broader": "b1"}, r"'r' has broader='b1'; expected a tuple of texts"),
        ({"alternatives": "hound"}, r"'r' has alternatives='hound'; expected a tuple of texts"),
        ({"alternatives": (None,)}, r"alternatives=\(None,\); expected a tuple of texts"),
        ({"broader": None}, "broader=None; expected a tuple of texts"),
        ({"name": 5}, "name=5; expected a text"),
        ({"text": None}, "text=None; expected a text, '' for none"),
        ({"label": ""}, "a concept has the label ''; expected its name"),
    ],
)
def test_concepts_of_wrong_types_are_refused(given, message):
    with pytest.raises(LabelsError, match=message):
        LabelVocabulary.of([Concept("b1", "bread"), Concept(**{"label": "r"} | given)])
    with pytest.raises(LabelsError, match="'b1' is a str; expected a Concept"):
        LabelVocabulary.of(["b1"])


@pytest.mark.parametrize("option", ["language", "name_separator"])
@pytest.mark.parametrize("given", [5, ""])
def test_options_of_wrong_types_are_refused(option, given):
    with pytest.raises(ParameterError, match=f"{option}={given!r} is not possible"):
        read_vocabulary(BytesIO(b"uri,label_en\n1,dog\n"), **{option: given})


def test_labels_of_another_vocabulary_are_refused_with_both_sides():
    with pytest.raises(LabelsError, match=rf"0 of 2 .*'cooking'.*{EX}c1.*'59'.*'Animal'"):
        PETS.matching(["cooking", "baking"])
    many = LabelVocabulary.of(Concept(f"a{i}") for i in range(1000))
    labels = [f"b{i}" for i in range(1000)]
    with pytest.raises(LabelsError, match="5 of 1,000"):
        many.matching([*labels[5:], *(f"a{i}" for i in range(5))])
    few = LabelVocabulary.of(Concept(f"a{i}") for i in range(10))
    assert few.matching([*labels, *few]) == few  # all that it has


@given(st.lists(st.sampled_from("abAB"), max_size=4), st.lists(st.sampled_from("abAB"), max_size=5))
def test_matched_labels_are_each_there_once(labels, given_names):
    vocabulary = LabelVocabulary.of(
        Concept(f"{'ab'[i % 2]}{i}", name) for i, name in enumerate(given_names)
    )
    try:
        found = vocabulary.matching(labels)
    except LabelsError:
        assert {label.casefold() for label in labels}.isdisjoint(map(str.casefold, given_names))
        return
    assert len(found) == len(set(found)) == len(vocabulary)
    for label in labels:
        if label in given_names:
            assert found[label].name.casefold() == label.casefold()


def test_parents_among_some_labels():
    found = PETS.parents([f"{EX}c2", "unheard of", f"{EX}c1"])
    assert found.dtype == bool
    assert found.toarray().tolist() == [[False, False, True], [False] * 3, [False] * 3]
    assert PETS.parents([]).shape == (0, 0)
    assert PETS.parents([f"{EX}c2"]).nnz == 0
    with pytest.raises(LabelsError, match="'a' twice"):
        PETS.parents(["a", "b", "a"])
    assert um.metrics.hierarchical_recall_at_k(
        [[1]], um.TopK([[2]], [[1.0]]), 1, PETS.parents(PETS)
    ) == pytest.approx(0.5)


@given(st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=8, max_size=8))
def test_cycles_are_cut_and_nothing_else(above):
    concepts = [Concept(str(i), broader=tuple(map(str, row))) for i, row in enumerate(above)]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        vocabulary = LabelVocabulary.of(concepts)
    links = {(i, j) for i, row in enumerate(above) for j in row}
    kept = {(int(label), int(j)) for label, each in vocabulary.items() for j in each.broader}
    whole = np.zeros((8, 8), bool)
    whole[tuple(zip(*links, strict=True)) if links else ([], [])] = True
    reached = np.linalg.matrix_power(whole + np.eye(8), 8) > 0
    in_cycle = {(i, j) for i, j in links if reached[j, i]}
    assert kept <= links
    assert links - kept <= in_cycle
    assert not cyclic(vocabulary.broader).any()
    assert bool(in_cycle) == (len(seen) > 0) == (links != kept)
    for link in links - kept:  # it closed one: with what is kept, it would close one again
        order = np.zeros((8, 8), bool)
        order[tuple(zip(*kept, strict=True)) if kept else ([], [])] = True
        assert (np.linalg.matrix_power(order + np.eye(8), 8) > 0)[link[1], link[0]]


def test_a_long_cycle_is_cut_once():
    n = 5000
    with pytest.warns(UserWarning, match=r"1 links .* '4999' to '0'|1 links"):
        found = LabelVocabulary.of(
            Concept(str(i), broader=(str((i + 1) % n),)) for i in range(n)
        )  # fmt: skip
    assert found.broader.nnz == n - 1
    assert not _closing_links(found.broader)


# --- In a model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 1500])
def test_it_is_saved_and_loaded(tmp_path, n):
    vocabulary = LabelVocabulary.of(
        Concept(f"{i}", f"name {i}", ("x", "y")[: i % 3], "", (str(i // 2),) if i else ())
        for i in range(n)
    )
    um.storage.save(vocabulary, tmp_path / "m")
    assert um.load(tmp_path / "m") == vocabulary


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("labels", [f"{EX}c1"] * 3),
        ("labels", ["", "a", "b"]),
        ("labels", ["a", "b"]),
        ("preferred", ["a", "b"]),
        ("preferred", ["a", "b", 3]),
        ("notations", None),
        ("alternatives", []),
        ("offsets", np.array([0, 1, 0, 1])),
        ("offsets", np.array([0, 0, 9, 1])),
        ("broader", np.eye(3, dtype=bool)),
        ("broader", np.ones((3, 2), bool)),
        ("broader", np.tril(np.ones((3, 3)), -1)),
    ],
)
def test_a_manipulated_model_is_refused(tmp_path, field, value):
    """Written by a hand that leaves checksums right: only the declarations can tell."""
    state = {name: getattr(PETS, name) for name in PETS.__dataclass_fields__}
    is_matrix = isinstance(value, np.ndarray) and value.ndim == 2
    state[field] = csr_matrix(value) if is_matrix else value
    um.storage.save(LabelVocabulary(**state), tmp_path / "m")
    with pytest.raises(ModelCorruptError):
        um.load(tmp_path / "m")
