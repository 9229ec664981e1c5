"""Runs the simulation of rates with all seeds, and the document's sizes message by message. Writes the figures to
`docs/data/distribution.json`, and the tables and pictures of the page. It takes a minute and a half.
"""

from __future__ import annotations

import json
from pathlib import Path

from cepheid.distribution.rates.comparison import SCHEMES, SEEDS, by_message, figures_of, outcome_of
from cepheid.distribution.rates.pictures import PICTURES
from cepheid.distribution.rates.simulation import Outcome
from scripts.build_docs import filled

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    outcomes: dict[str, dict[int, Outcome]] = {name: {} for name in SCHEMES}
    for number, seed in enumerate(SEEDS, 1):
        for name in SCHEMES:
            outcomes[name][seed] = outcome_of(name, seed)
        print(f"{number} of {len(SEEDS)} seeds")
    rates = {name: {seed: figures_of(outcome) for seed, outcome in own.items()} for name, own in outcomes.items()}
    (DOCS / "data").mkdir(exist_ok=True)
    stored = {"rates": rates, "by_message": by_message()}
    (DOCS / "data" / "distribution.json").write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
    for name, draw in PICTURES.items():
        (DOCS / "images" / f"distribution_{name}.png").write_bytes(draw(outcomes))

    page = DOCS / "distribution.md"
    page.write_text(filled(page.read_text("utf-8"), ["distribution rates", "distribution by message"]), "utf-8")


if __name__ == "__main__":
    main()
