"""Click models of logs: T12 of PyClick, positions that are not identified, propensities."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from tests.click_traffic import DEPTH, EXAMINATION, research_form, traffic
from tests.event_stores import keep_events

from karat import clicks
from karat.errors import InputError, UsageError
from karat.tables.online.clicks import Examination, Propensities
from karat.tables.online.events import EventLog
from karat.workflows.online import click_fit
from karat.workflows.online.click_fit import fit_clicks

T12 = [
    ("abcdefghij", ("a", "b", "a,c", "")),
    ("bacdefghij", ("b", "a", "a,c")),
    ("cabdefghij", ("d", "c", "a,e")),
    ("jihgfedcba", ("b", "c,a")),
]
"""Documents from rank 1, and the clicks of each page that showed them."""


@pytest.fixture
def t12(tmp_path: Path) -> Path:
    pages = [f"q\t{','.join(docs)} : {own}" for docs, each in T12 for own in each]
    path = tmp_path / "t12.txt"
    path.write_text(";".join(pages) + "\n")
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    """Half of the searches in random order; phones look at lower ranks less."""
    events = traffic(3000, random=0.5, sharpness=2)
    return keep_events(tmp_path_factory.mktemp("clicks") / "log", events)


@pytest.mark.parametrize(
    ("model", "log_likelihood", "perplexity"),
    [  # PyClick 98e7e46, trained and tested on T12; its PBM after 50 iterations is .0000012 below
        ("GCTR", -0.376938, 1.493931),
        ("RCTR", -0.339877, 1.429149),
        ("DCTR", -0.287392, 1.352375),
        ("PBM", -0.278755, 1.341992),
        ("SDBN", -0.269036, 1.366446),
    ],
)
def test_models_of_t12(t12: Path, model: str, log_likelihood: float, perplexity: float) -> None:
    result = fit_clicks(t12, model)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=1e-6)
    assert result.perplexity == pytest.approx(perplexity, abs=1e-6)
    assert len(result.perplexity_by_rank) == 10
    # d to g are at ranks 4 to 7 on every page.
    assert not result.identified
    assert result.examination is None
    assert result.reason == "documents at ranks 4-7 were never shown at ranks 1-3, 8-10"
    assert (result.pages, result.pairs, result.impressions, result.clicks) == (12, 10, 120, 15)
    assert result.unseen is None
    assert result.worst_queries[0]["query"] == "q"


def test_compat_is_pyclick_after_fifty_iterations(t12: Path) -> None:
    result = fit_clicks(t12, "pbm", compat="pyclick")
    assert result.log_likelihood == pytest.approx(-0.278756, abs=5e-7)
    assert result.iterations == 50


def test_a_model_of_events(log: EventLog) -> None:
    result = fit_clicks(log, by="device", randomised="order=random")
    assert result.identified
    assert result.reason == ""
    assert [each.rank for each in result.examination or ()] == [*range(1, DEPTH + 1)]
    assert {stratum.value: stratum.pages for stratum in result.strata} == {
        "phone": 1500,
        "desk": 1500,
    }
    # Truth by device: the intervals, at 95 % each, have the value of all but a few of 8 ranks.
    known = {"desk": EXAMINATION, "phone": EXAMINATION**2}
    inside = [
        (each.ci_low or 0) <= known[str(stratum.value)][each.rank - 1] <= (each.ci_high or 2)
        for stratum in result.strata
        for each in (stratum.examination or ())[1:]
    ]
    assert len(inside) == 8
    assert sum(inside) >= 7
    assert result.propensities is not None
    assert result.propensities.source == "randomised"
    assert 1400 < result.propensities.searches < 1600
    assert result.propensities.differs_at is None
    assert result.to_dict()["propensities"]["examination"][0]["value"] == 1


def test_a_log_in_fixed_order(tmp_path: Path) -> None:
    log = keep_events(tmp_path / "log", traffic(300, random=0))
    result = fit_clicks(log)
    assert (result.identified, result.examination) == (False, None)
    assert result.reason == "documents at ranks 2-5 were never shown at another rank"
    assert result.perplexity > 1


def test_a_held_out_log(tmp_path: Path) -> None:
    train, test = traffic(1500, seed=1), traffic(300, seed=2)
    # The last queries are new, with documents that the model never saw.
    renamed = pl.col("hits").list.eval(pl.element().str.replace("d5", "new"))
    later = test.with_columns(hits=renamed, doc_id=pl.col("doc_id").str.replace("d5", "new"))
    fitted = fit_clicks(
        research_form(train, tmp_path / "a.txt"), held_out=research_form(later, tmp_path / "b.txt")
    )
    assert fitted.held_out
    assert fitted.pages == 1500
    assert fitted.unseen == 8  # the documents of query 5
    own = fit_clicks(tmp_path / "a.txt")
    assert own.perplexity < fitted.perplexity < 2
    assert own.examination == fitted.examination
    # The same by events; the mapping of the first log is not for a second that is imported.
    held_out = keep_events(tmp_path / "log", later)
    by_events = fit_clicks(tmp_path / "a.txt", held_out=held_out)
    assert by_events.perplexity == pytest.approx(fitted.perplexity)


def test_interleaved_searches_have_propensities(tmp_path: Path) -> None:
    log = keep_events(tmp_path / "log", traffic(1500, random=0, interleaved=0.9))
    found = fit_clicks(log).propensities
    assert found is not None
    assert found.source == "interleaved"
    assert found.examination[0].value == 1
    few = keep_events(tmp_path / "few", traffic(300, random=0.8, interleaved=0.2))
    result = fit_clicks(few)
    assert result.propensities is None
    assert "interleaved searches are too few for propensities" in " ".join(result.notes)


def test_where_the_model_differs_from_random_order() -> None:
    def examination(*values: tuple[float, float, float]) -> list[Examination]:
        rows = [Examination(1, 1, None, None, 10)]
        return rows + [Examination(at, v, low, up, 10) for at, (v, low, up) in enumerate(values, 2)]

    random = Propensities(
        "randomised", 9, examination((0.6, 0.5, 0.7), (0.5, 0.4, 0.6), (0.2, 0.1, 0.3)), None
    )

    own = SimpleNamespace(
        examination=examination((0.75, 0.65, 0.85), (0.2, 0.1, 0.3), (0.4, 0.35, 0.5))
    )

    # Intervals overlap at rank 2; at ranks 3 and 4 they do not, and .3 is more than .2.
    compared = click_fit.compared(random, own)  # type: ignore[arg-type]
    assert compared is not None
    assert compared.differs_at == 3


def test_presentation_has_an_examination_of_its_own(tmp_path: Path) -> None:
    device = pl.when(pl.col("attribute_device") == "desk").then(pl.lit("image"))
    events = traffic(1000).with_columns(attribute_way=device)
    result = fit_clicks(keep_events(tmp_path / "log", events), presentation="way")
    places = [(each.rank, each.presentation) for each in result.examination or ()]
    assert places == [(rank, way) for rank in range(1, 6) for way in (None, "image")]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"model": "PBN"}, "unknown click model 'PBN'; did you mean PBM"),
        ({"randomised": "order"}, "does not name an attribute and its value"),
        ({"randomised": "order=shuffled"}, "no searches for a text with order=shuffled"),
        ({"by": "devices"}, "no attribute devices; did you mean device"),
    ],
)
def test_mistakes(log: EventLog, options: dict[str, str], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        fit_clicks(log, **options)


def test_a_mapping_is_for_a_log_that_is_not_imported(log: EventLog, t12: Path) -> None:
    with pytest.raises(UsageError, match="imported already"):
        fit_clicks(log, mapping="mapping.toml")
    with pytest.raises(UsageError, match="mapping needs an event log"):
        fit_clicks(t12, mapping="mapping.toml")
    with pytest.raises(InputError, match="no such file"):
        fit_clicks(t12.with_name("none.txt"))


def test_karat_clicks_has_the_verbs(t12: Path) -> None:
    frame = traffic(200).rename({"time_us": "time", "kind": "action"})
    assert clicks.fit(frame, "RCTR").pages == 200
    assert clicks.fit(t12, "DCTR").model == "DCTR"
    assert [model.name for model in clicks.models()][:3] == ["GCTR", "RCTR", "DCTR"]
    assert [model.name for model in clicks.models("sdbn")] == ["SDBN"]
