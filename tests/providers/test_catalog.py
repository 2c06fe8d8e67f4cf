"""Model facts such as prices come from the catalog or the settings. Unknown facts are left empty."""

from pathlib import Path

import msgspec
import pytest

from hark.providers import catalog
from hark.providers.catalog import ModelCatalog, ModelFacts

UNKNOWN = ModelFacts()


def test_a_known_model_has_a_context_window_and_prices() -> None:
    assert ModelCatalog({}).get_facts("claude-haiku-4-5") == ModelFacts(200_000, 1.0, 5.0, 0.1)


@pytest.mark.parametrize("name", ["claude-haiku-4-5-20251001", "anthropic/claude-haiku-4.5"])
def test_a_dated_model_name_and_a_gateway_model_name_refer_to_the_same_model(name: str) -> None:
    assert ModelCatalog({}).get_facts(name) == ModelCatalog({}).get_facts("claude-haiku-4-5")


@pytest.mark.parametrize(
    "name", ["", "some-model", "gpt-5-nano-tuned", "gpt-5-nano:free", "other/gpt-5-nano", "claude"]
)
def test_an_unknown_model_has_no_context_window_and_no_prices(name: str) -> None:
    assert ModelCatalog({}).get_facts(name) == UNKNOWN


def test_the_settings_can_add_models_and_override_individual_facts() -> None:
    extended = ModelCatalog({"gpt-5-nano": ModelFacts(input_price=9.0), "mine": ModelFacts(context_tokens=4096)})
    assert extended.get_facts("gpt-5-nano") == ModelFacts(400_000, 9.0, 0.4, 0.005)
    assert extended.get_facts("mine") == ModelFacts(4096)


def test_a_price_of_zero_is_not_replaced_by_the_default() -> None:
    assert ModelFacts(input_price=0.0).with_defaults(ModelFacts(input_price=1.0, output_price=2.0)) == ModelFacts(
        None, 0.0, 2.0
    )


def test_all_facts_in_the_catalog_are_plausible() -> None:
    text = Path(catalog.__file__).with_name("catalog.toml").read_text("utf-8")
    shipped = msgspec.toml.decode(text, type=dict[str, ModelFacts])
    assert len(shipped) > 15
    for name, facts in shipped.items():
        assert facts.input_price is not None, name
        assert facts.output_price is not None, name
        assert facts.input_price <= facts.output_price <= 100, name
        assert facts.cached_price is None or facts.cached_price <= facts.input_price, name
        assert facts.context_tokens is None or 8_000 <= facts.context_tokens <= 2_000_000, name
