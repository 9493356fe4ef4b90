"""The data of the tutorials: made up, small, and the same on every machine.

python docs/tutorials/made_up.py FOLDER writes library.csv, shop.csv and products.csv there.
"""

import csv
import random
import sys
from pathlib import Path

TOPICS = {
    "Baking": "bread dough yeast oven flour sourdough crust loaf",
    "Beekeeping": "bees hive honey queen swarm pollen wax nectar",
    "Bridges": "bridge span cable arch river load steel engineer",
    "Chess": "opening endgame knight bishop tournament master gambit board",
    "Climate": "carbon warming temperature emissions ocean glacier drought atmosphere",
    "Cycling": "bicycle wheel race gear saddle road chain rider",
    "Dinosaurs": "fossil bones extinct jurassic teeth skeleton reptile dig",
    "Gardening": "soil seeds roses compost prune vegetables greenhouse weeds",
    "Genetics": "gene mutation dna inheritance protein chromosome trait genome",
    "Jazz": "saxophone improvisation trumpet swing quartet blues melody club",
    "Lighthouses": "lamp coast keeper tower fog ships rocks lens",
    "Medicine": "patient disease hospital treatment doctor symptoms drug surgery",
    "Painting": "canvas portrait colour brush impressionist gallery oil landscape",
    "Railways": "train station locomotive track tunnel passengers timetable signal",
    "Sailing": "boat wind harbour mast keel sails regatta crew",
    "Trade": "merchants prices market export tariff goods port taxes",
    "Volcanoes": "lava eruption crater ash magma earthquake mountain island",
    "Weaving": "loom wool thread cloth pattern linen dye yarn",
}
SHOP = {
    "waterproof": "rain keeps water out sealed seams",
    "breathable": "air vents mesh stays cool sweat",
    "lightweight": "weighs grams packs small featherlight",
    "insulated": "warm down filling winter cold",
    "recycled": "recycled plastic bottles reused fibres",
    "reflective": "reflective strips visible night headlights",
    "organic": "organic cotton certified without pesticides",
    "foldable": "folds flat pouch travel suitcase",
}
KINDS = ["jacket", "tent", "backpack", "gloves", "hat", "trousers", "bag", "shoes"]
PLAIN = [
    "a", "short", "account", "with", "many", "examples", "notes", "on", "the", "history", "of",
    "early", "and", "modern", "life",
]  # fmt: skip


def write_library(path, n_records=1500, seed=0):
    """Write a CSV of books: title, abstract, and subjects separated by `;`."""
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["title", "abstract", "subjects"])
        for _ in range(n_records):
            subjects = draw.sample(sorted(TOPICS), draw.choice([1, 1, 2, 3]))
            words = [word for each in subjects for word in draw.sample(TOPICS[each].split(), 4)]
            title = f"The {words[0]} and the {words[1]}".capitalize()
            words += draw.sample(PLAIN, 8)
            draw.shuffle(words)
            table.writerow([title, " ".join(words), ";".join(subjects)])


def write_shop(path, n_brands=400, seed=0):
    """Write a CSV of products: brand, product, and the attributes that the *brand* advertises."""
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["brand", "product", "brand_attributes", "true_attributes"])
        for brand in range(n_brands):
            own = [draw.sample(sorted(SHOP), draw.choice([1, 1, 2])) for _ in range(4)]
            advertised = sorted({attribute for each in own for attribute in each})
            for attributes in own:
                words = [word for each in attributes for word in draw.sample(SHOP[each].split(), 3)]
                words += [draw.choice(KINDS), *draw.sample(PLAIN, 3)]
                draw.shuffle(words)
                cells = [f"brand-{brand:03}", " ".join(words), advertised, attributes]
                table.writerow(
                    [each if isinstance(each, str) else "|".join(each) for each in cells]
                )


def write_products(path, n_products=600, seed=0):
    """Write a CSV of products: id, description, and the ids that customers bought with it."""
    draw = random.Random(seed)
    words = [draw.sample(TOPICS[draw.choice(sorted(TOPICS))].split(), 5) for _ in range(n_products)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "description", "bought_with"])
        for i, own in enumerate(words):
            shared = {j: len({*own} & {*other}) for j, other in enumerate(words) if j != i}
            bought = sorted(shared, key=lambda j: (-shared[j], j))[:5]
            text = " ".join(own + draw.sample(PLAIN, 3))
            table.writerow([f"p{i}", text, "|".join(f"p{j}" for j in sorted(bought))])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    write_library(folder / "library.csv")
    write_shop(folder / "shop.csv")
    write_products(folder / "products.csv")
