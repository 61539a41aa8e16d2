"""Click models by name."""

from __future__ import annotations

import pytest

from karat.errors import UsageError
from karat.online.clicks.registry import MODELS, find


def test_a_model_is_found_in_any_case() -> None:
    assert [find(model.name.swapcase()) for model in MODELS] == list(MODELS)


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown click model 'PBN'; did you mean PBM"):
        find("PBN")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_an_entry_is_complete(model: object) -> None:
    texts = [getattr(model, name) for name in ("title", "assumes", "blind", "source")]
    assert all(texts)
    assert model.assumes.endswith(".")  # type: ignore[attr-defined]
    assert model.parameters  # type: ignore[attr-defined]


def test_what_models_need() -> None:
    needs = {model.name: model.needs for model in MODELS}
    assert {name for name, need in needs.items() if need == "pages"} == {"Cascade", "SDBN", "DBN"}
