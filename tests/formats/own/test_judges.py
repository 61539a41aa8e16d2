"""``[judge.NAME]`` in karat.toml."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

from karat.errors import InputError, UsageError
from karat.formats.own.judges import read_judge, read_judges, with_key
from karat.tables.golden.machine_judges import Prices


def declared(folder, text, name="j"):
    (folder / "karat.toml").write_text(text, encoding="utf-8")
    return read_judge(name, folder)


CHAT = '[judge.j]\nkind = "chat"\nbase_url = "http://localhost:8080/v1"\nmodel = "m"\n'


def test_a_chat_judge_with_all_its_settings(tmp_path, monkeypatch):
    (tmp_path / "rubric.txt").write_text("Grade {grades}.", encoding="utf-8")
    found = declared(
        tmp_path,
        CHAT + 'api_key = { env = "K" }\nscale = "0-4"\ntemplate = "rubric.txt"\nseed = 7\n'
        'temperature = "default"\nprices = { input = 0.15, output = 0.6 }\nkappa = 0.6\n',
    )
    assert found.grades == (0.0, 1.0, 2.0, 3.0, 4.0)
    assert (found.template, found.seed, found.temperature) == ("Grade {grades}.", 7, None)
    assert found.prices == Prices(0.15, 0.6)
    assert found.kappa == 0.6
    with pytest.raises(UsageError, match="environment variable K is not set"):
        with_key(found)
    monkeypatch.setenv("K", "secret")
    assert with_key(found).api_key == "secret"


def test_a_command_and_a_function(tmp_path):
    found = declared(
        tmp_path,
        '[judge.p]\nkind = "command"\ncommand = "python judge.py --fast"\n'
        '[judge.f]\nkind = "python"\nfunction = "m:f"\nscale = [0, 1]\n',
        "p",
    )
    assert found.command == ("python", "judge.py", "--fast")
    assert read_judges(tmp_path)["f"].grades == (0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CHAT.replace('"chat"', '"chatt"'), "unknown kind 'chatt'"),
        (CHAT.replace('model = "m"\n', ""), "no model"),
        (CHAT + "modell = 1\n", "unknown key 'modell'"),
        (CHAT + 'api_key = "sk-1"\n', "a secret, which does not belong in this file"),
        (CHAT + 'scale = "3-0"\n', "scale"),
        (CHAT + "prices = { inputs = 1 }\n", "unknown price 'inputs'"),
        (CHAT + "prices = { input = -1 }\n", "dollars per million tokens"),
        (CHAT + 'template = "none.txt"\n', "none.txt cannot be read"),
        (CHAT + 'response = "xml"\n', "response is 'xml'"),
        (CHAT + "seed = 1.5\n", "not a whole number"),
        ("[judge]\nj = 1\n", "not a table"),
    ],
)
def test_a_wrong_declaration_is_refused(text, reason, tmp_path):
    with pytest.raises(InputError, match=reason):
        declared(tmp_path, text)


def test_an_unknown_judge_has_its_nearest(tmp_path):
    with pytest.raises(UsageError, match="no judge 'k'"):
        declared(tmp_path, CHAT, "k")


def test_the_version_changes_with_what_grades_depend_on_and_not_with_prices(tmp_path):
    plain = declared(tmp_path, CHAT)
    assert (
        declared(tmp_path, CHAT + "prices = { input = 1, output = 1 }\n").version == plain.version
    )
    assert declared(tmp_path, CHAT + "max_tokens = 9\n").version != plain.version


OPENAI = CHAT.replace("http://localhost:8080/v1", "https://api.openai.com/v1")


@pytest.fixture
def known_prices(monkeypatch):
    """``genai_prices`` as of 0.2.3: a price by the length of the prompt has its lowest as base."""
    prices = SimpleNamespace(
        input_mtok=SimpleNamespace(base=1.25), output_mtok=10, cache_read_mtok=None
    )

    def find(model, _provider, _id, url):
        if "openai" not in url or model != "m":
            raise LookupError(url)
        return None, SimpleNamespace(get_prices=lambda _time: prices)

    data = ModuleType("genai_prices.data_snapshot")
    data.get_snapshot = lambda: SimpleNamespace(find_provider_model=find)
    monkeypatch.setitem(sys.modules, "genai_prices", ModuleType("genai_prices"))
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", data)
    monkeypatch.setattr("karat.formats.own._model_prices.metadata.version", lambda _name: "0.2.3")


@pytest.mark.usefixtures("known_prices")
def test_prices_that_are_not_declared_are_those_of_genai_prices(tmp_path):
    known = Prices(1.25, 10.0, source="genai-prices 0.2.3")
    assert declared(tmp_path, OPENAI).prices == known
    found = declared(tmp_path, OPENAI + "prices = { batch = 0.5 }\n")
    assert found.prices == replace(known, batch=0.5)
    # What is declared is not mixed with it, and what is unknown stays unknown.
    assert declared(tmp_path, OPENAI + "prices = { input = 1 }\n").prices == Prices(1.0)
    assert declared(tmp_path, CHAT).prices == Prices()
    assert declared(tmp_path, OPENAI.replace('"m"', '"m2"')).prices == Prices()


def test_without_genai_prices_they_are_unknown(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert declared(tmp_path, OPENAI).prices == Prices()
