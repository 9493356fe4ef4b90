"""Questions about cooking, each with a label for its subject and one for what is asked about it."""

from itertools import product

SUBJECTS = {
    "bread": ["sourdough loaf", "rye bread", "baguette", "wheat flour dough", "naan bread"],
    "fish": ["salmon fillet", "tuna steak", "cod", "smoked trout", "fish stock"],
    "rice": ["basmati rice", "risotto", "sushi rice", "brown rice", "rice pudding"],
    "coffee": ["espresso", "cold brew coffee", "coffee beans", "french press coffee", "latte"],
    "cheese": ["cheddar cheese", "mozzarella", "ricotta", "blue cheese", "grated parmesan"],
    "beef": ["beef roast", "ground beef", "beef brisket", "sirloin steak", "beef stew"],
}
ASPECTS = {
    "storage": ["How long does {} keep in the fridge?", "Should I freeze {} or not?",
                "Which jar is best to store {}?"],
    "equipment": ["Which pan do I need for {}?", "What thermometer works well with {}?",
                  "Is a special knife useful for {}?"],
    "flavour": ["Why does my {} taste bitter?", "What spices go well with {}?",
                "My {} is too salty, how can I fix the taste?"],
}  # fmt: skip
FERMENTED = [
    "kimchi", "kombucha", "sauerkraut", "tempeh", "miso paste", "kefir", "water kefir grains",
    "fermented hot sauce", "beet kvass", "pickled cabbage",
]  # fmt: skip


def samples() -> tuple[list[str], list[list[str]]]:
    """Return texts and their labels."""
    texts, labels = [], []
    for (subject, things), (aspect, questions) in product(SUBJECTS.items(), ASPECTS.items()):
        for thing, question in product(things, questions):
            texts.append(question.format(thing))
            labels.append([subject, aspect])
    return texts, labels


def new_questions() -> list[str]:
    """Return twenty texts, half of them about something that no label is for."""
    fermented = [
        f"My {thing} bubbles and smells sour, is the culture alive?" for thing in FERMENTED
    ]
    known = [f"Is it safe to leave {thing} on the counter?" for things in SUBJECTS.values()
             for thing in things]  # fmt: skip
    return [text for pair in zip(fermented, known[::3], strict=True) for text in pair]
