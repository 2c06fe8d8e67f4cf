"""What is known of models, and that nothing else is made up."""

from pathlib import Path

import msgspec
import pytest

from hark.providers import catalog
from hark.providers.catalog import Catalog, ModelFacts

UNKNOWN = ModelFacts()


def test_a_known_model_has_its_window_and_prices() -> None:
    assert Catalog({}).facts("claude-haiku-4-5") == ModelFacts(200_000, 1.0, 5.0, 0.1)


@pytest.mark.parametrize("name", ["claude-haiku-4-5-20251001", "anthropic/claude-haiku-4.5"])
def test_a_dated_name_and_a_gateways_name_are_the_same_model(name: str) -> None:
    assert Catalog({}).facts(name) == Catalog({}).facts("claude-haiku-4-5")


@pytest.mark.parametrize(
    "name", ["", "some-model", "gpt-5-nano-tuned", "gpt-5-nano:free", "other/gpt-5-nano", "claude"]
)
def test_an_unknown_model_has_neither_window_nor_price(name: str) -> None:
    assert Catalog({}).facts(name) == UNKNOWN


def test_the_settings_add_models_and_correct_single_figures() -> None:
    extended = Catalog({"gpt-5-nano": ModelFacts(input_price=9.0), "mine": ModelFacts(context_tokens=4096)})
    assert extended.facts("gpt-5-nano") == ModelFacts(400_000, 9.0, 0.4, 0.005)
    assert extended.facts("mine") == ModelFacts(4096)


def test_a_price_of_zero_is_a_price() -> None:
    assert ModelFacts(input_price=0.0).over(ModelFacts(input_price=1.0, output_price=2.0)) == ModelFacts(None, 0.0, 2.0)


def test_every_figure_of_the_catalogue_is_plausible() -> None:
    text = Path(catalog.__file__).with_name("catalog.toml").read_text("utf-8")
    known = msgspec.toml.decode(text, type=dict[str, ModelFacts])
    assert len(known) > 15
    for name, facts in known.items():
        assert facts.input_price is not None, name
        assert facts.output_price is not None, name
        assert facts.input_price <= facts.output_price <= 100, name
        assert facts.cached_price is None or facts.cached_price <= facts.input_price, name
        assert facts.context_tokens is None or 8_000 <= facts.context_tokens <= 2_000_000, name
