"""karat.toml: what is written is read, and what is wrong is named with its fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.errors import InputError, UsageError
from karat.formats.own.workspace import (
    NAME,
    find_workspace,
    read_defaults,
    read_workspace,
    without_password,
    write_workspace,
)
from karat.tables.engines import Secret
from karat.tables.workspace import GRADES, WatchConfig


def written(folder: Path, text: str) -> Path:
    (folder / NAME).write_text(text, encoding="utf-8")
    return folder / NAME


def test_what_init_writes_is_read_back(tmp_path: Path) -> None:
    made = write_workspace(
        tmp_path / "new", store="sqlite:///karat.db", name='a "b"\n', scale="0-3", raters=3
    )
    assert read_workspace(tmp_path / "new" / NAME, {}) == made
    assert (made.golden, made.scale, made.raters, made.grades) == ('a "b"\n', (0, 3), 3, GRADES)
    assert made.store == f"sqlite:///{(tmp_path / 'new' / 'karat.db').as_posix()}"
    assert "**3** Right" in made.guideline.read_text(encoding="utf-8")
    assert (made.repeats, made.golds) == (0.05, 0.05)
    assert made.lease_us == 10 * 60 * 1_000_000
    with pytest.raises(UsageError, match="already exists"):
        write_workspace(tmp_path / "new", store="x", name="x", scale="0-3", raters=2)


def test_the_defaults_that_init_suggests_are_read(tmp_path: Path) -> None:
    write_workspace(tmp_path, store="sqlite:///karat.db", name="g", scale="0-3", raters=2)
    assert read_defaults(tmp_path) is None
    text = (tmp_path / NAME).read_text(encoding="utf-8")
    head, _, suggested = text.partition("# [defaults]")
    written(tmp_path, head + "[defaults]" + suggested.replace("\n# ", "\n"))
    found = read_defaults(tmp_path / "below")
    assert found is not None
    assert (found.measures, found.by) == (("nDCG@10", "R@100"), ("category",))
    assert (found.scale, found.fully_judged) == ([0, 3], True)
    line = found.lines["scale"] - 1
    assert (tmp_path / NAME).read_text(encoding="utf-8").splitlines()[line] == "scale = [0, 3]"


def test_another_scale_has_its_grades(tmp_path: Path) -> None:
    made = write_workspace(tmp_path, store="sqlite:///x.db", name="g", scale="1-4", raters=2)
    # A word that is not the number, which stands beside it wherever a grade is given.
    steps = {2: "In part: step 1 of 3 towards right", 3: "In part: step 2 of 3 towards right"}
    assert made.grades == {1: "Useless", **steps, 4: "Right"}


def test_nothing_is_made_of_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a scale"):
        write_workspace(tmp_path / "x", store="sqlite:///x.db", name="g", scale="3", raters=2)
    with pytest.raises(InputError, match="raters is 0"):
        write_workspace(tmp_path / "x", store="sqlite:///x.db", name="g", scale="0-3", raters=0)
    assert not (tmp_path / "x").exists()


def test_it_is_found_from_below(tmp_path: Path) -> None:
    path = written(tmp_path, "[workspace]\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_workspace(below) == path.resolve()
    assert read_workspace(path, {}).store.endswith("/karat.db")


def test_without_one_the_fix_is_init(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fix: karat init"):
        find_workspace(tmp_path)


def test_the_environment_stands_above_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '[workspace]\nstore = "sqlite:///a.db"\n')
    url = "postgresql://me@db/karat"
    assert read_workspace(path, {"KARAT_STORE": url}).store == url


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "not valid TOML"),
        ("[goldn]\n", "did you mean golden"),
        ("golden = 3\n", r"write \[golden\]"),
        ("[golden]\nratters = 2\n", "did you mean raters"),
        ("[golden]\nraters = 2.5\n", "not a whole number from 1 to 99"),
        ("[golden]\nraters = true\n", "not a whole number"),
        ("[golden]\nrepeats = 0.9\n", "from 0 to 0.5"),
        ("[golden]\ngolds = 0.9\n", "golds is 0.9, not a number from 0 to 0.5"),
        ('[golden]\nscale = "3"\n', "not a scale"),
        ('[golden]\norder = "querry"\n', "did you mean query"),
        ('[golden]\nname = " "\n', "not a string"),
        ("[golden]\nlease = 10\n", "not a duration"),
        ("[golden.grades]\n0 = 3\n", "not a string"),
        ('[golden.grades]\n0 = "no"\n', "lacks 3, an end of the scale"),
        ('[golden.grades]\n9 = "no"\n', "not a grade from 0 to 3"),
        ('[agreement]\nweights = "x"\n', "one of none, linear, quadratic"),
        ('[agreement]\nrefuse = "no"\n', "not true or false"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_workspace(written(tmp_path, text), {})


SECRETS = [
    ("postgresql://me:s3cret@db/karat", "postgresql://me@db/karat"),
    ("postgresql+psycopg://:s3/c?t@db:5432/karat", "postgresql+psycopg://@db:5432/karat"),
    ("postgresql://me@db/karat?password=s3cret", "postgresql://me@db/karat"),
    (
        "postgresql://me@db/karat?sslmode=require&sslpassword=s3cret",
        "postgresql://me@db/karat?sslmode=require",
    ),
    # SQLAlchemy reads names of options without their escapes.
    ("postgresql://me@db/karat?pass%77ord=s3cret", "postgresql://me@db/karat"),
    ("postgresql://me@db/karat?a=b&SSL%50assword=s3", "postgresql://me@db/karat?a=b"),
]


@pytest.mark.parametrize(("url", "bare"), SECRETS)
def test_a_password_is_refused_and_told_of(tmp_path: Path, url: str, bare: str) -> None:
    assert without_password(url) == bare
    assert without_password(bare) == bare
    with pytest.raises(UsageError, match="KARAT_STORE") as refused:
        write_workspace(tmp_path / "x", store=url, name="g", scale="0-3", raters=2)
    assert "s3" not in str(refused.value)
    assert not (tmp_path / "x").exists()
    # In a file that has one it works, and is told of, whatever the environment says.
    path = written(tmp_path, f'[workspace]\nstore = "{url}"\n')
    for environment in ({}, {"KARAT_STORE": bare}):
        found = read_workspace(path, environment)
        assert found.store == (environment.get("KARAT_STORE") or url)
        (note,) = found.notes
        assert "KARAT_STORE" in note
        assert "s3" not in note + repr(found)


@pytest.mark.parametrize("url", ["postgresql://me@db/karat", "sqlite:///a:b@c?password=x.db"])
def test_what_is_no_password_is_let_be(tmp_path: Path, url: str) -> None:
    assert without_password(url) == url
    assert read_workspace(written(tmp_path, f'[workspace]\nstore = "{url}"\n'), {}).notes == ()


@pytest.mark.parametrize("url", ["sqlite:karat.db", "sqlite:///karat.db", "sqlite:///./karat.db"])
def test_a_sqlite_path_is_of_the_workspace(tmp_path: Path, url: str) -> None:
    path = written(tmp_path, f'[workspace]\nstore = "{url}"\n')
    assert read_workspace(path, {}).store == f"sqlite:///{(tmp_path / 'karat.db').as_posix()}"
    assert read_workspace(path, {"KARAT_STORE": url}).store == read_workspace(path, {}).store


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:s3@cret@db/karat", "postgresql://me:s3/cr@et@db/k", "postgresql://a@s3@db/k"],
)
def test_a_second_at_sign_is_refused_and_not_printed(tmp_path: Path, url: str) -> None:
    path = written(tmp_path, f'[workspace]\nstore = "{url}"\n')
    (tmp_path / "other").mkdir()
    plain = written(tmp_path / "other", "[workspace]\n")
    for act in (
        lambda: read_workspace(path, {}),
        lambda: read_workspace(plain, {"KARAT_STORE": url}),
        lambda: write_workspace(tmp_path / "x", store=url, name="g", scale="0-3", raters=2),
    ):
        with pytest.raises((InputError, UsageError), match="write @ as %40") as refused:
            act()
        assert "s3" not in str(refused.value)
    assert "s3" not in without_password("postgresql://me:s3@s3@db/karat")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("url", ["sqlite://karat.db", "sqlite://x/karat.db"])
def test_two_slashes_are_refused(tmp_path: Path, url: str) -> None:
    """Else the store would be made at the root of the disk."""
    path = written(tmp_path, f'[workspace]\nstore = "{url}"\n')
    for act in (
        lambda: read_workspace(path, {}),
        lambda: write_workspace(tmp_path / "x", store=url, name="g", scale="0-3", raters=2),
    ):
        with pytest.raises((InputError, UsageError), match=r"two slashes.*\n.*sqlite:///karat\.db"):
            act()


@pytest.mark.parametrize("url", ["sqlite:", "sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_path_that_is_none_is_left_to_the_store(tmp_path: Path, url: str) -> None:
    path = written(tmp_path, f'[workspace]\nstore = "{url}"\n')
    assert read_workspace(path, {}).store == url


def test_an_absolute_path_stays(tmp_path: Path) -> None:
    there = (tmp_path / "karat.db").as_posix()
    for url in (f"sqlite:///{there}", f"sqlite:{there}"):
        found = read_workspace(written(tmp_path, f'[workspace]\nstore = "{url}"\n'), {})
        assert found.store == f"sqlite:///{there}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[golden]\nname = "a"\nraters 2\n', 3),
        ('[golden]\nname = "a"\nname = "b"\n', 3),
        ('[workspace]\nstore = "postgresql://a:s3cret@h/d\n', 2),
        ("[golden]\nname =", 2),
        ("[golden", 1),
    ],
)
def test_a_broken_file_is_repaired_and_not_made_again(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(InputError, match="not valid TOML") as caught:
        read_workspace(written(tmp_path, text), {})
    assert caught.value.line == line
    assert f"correct line {line}" in str(caught.value.fix)
    assert "karat init" not in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "(at" not in caught.value.what


def test_what_is_not_utf8_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b'[golden]\nname = "M\xfcller"\n')
    with pytest.raises(InputError, match="not UTF-8") as caught:
        read_workspace(tmp_path / NAME, {})
    assert caught.value.line == 2


def test_a_scale_that_lost_its_grades_is_told_to_be_fixed(tmp_path: Path) -> None:
    signs = "".join(f'{grade} = "sign"\n' for grade in range(5))
    path = written(tmp_path, f'[golden]\nscale = "0-3"\n[golden.grades]\n{signs}')
    with pytest.raises(InputError, match="'4' is not a grade from 0 to 3") as caught:
        read_workspace(path, {})
    assert "the scale of a golden set with judgments is fixed" in str(caught.value.fix)


def test_the_watch_that_init_suggests_is_read(tmp_path: Path) -> None:
    made = write_workspace(tmp_path, store="sqlite:///karat.db", name="g", scale="0-3", raters=2)
    assert made.watch == WatchConfig()
    text = (tmp_path / NAME).read_text(encoding="utf-8")
    head, _, suggested = text.partition("# [watch]")
    own, _, rest = suggested.partition("# [defaults]")
    written(tmp_path, head + "[watch]" + own.replace("\n# ", "\n") + rest)
    found = read_workspace(tmp_path / NAME, {}).watch
    notify = Secret(env="SLACK_WEBHOOK")
    assert found == WatchConfig(3_600_000_000, "1d", ("arm",), notify, "slack")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('every = "soon"', "not a duration"),
        ('window = "5h"', "5 hours do not divide a day"),
        ('by = "arm"', "not a list of strings"),
        ("notify = 3", "notify is 3, not a URL"),
        ('notify = { url = "https://x" }', "not a URL"),
        ('format = "teams"', "unknown value 'teams'"),
        ('when = "1h"', "unknown key 'when'"),
    ],
)
def test_a_watch_that_cannot_be(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_workspace(written(tmp_path, f"[watch]\n{line}\n"), {})


def test_how_often_it_watches(tmp_path: Path) -> None:
    for text, expected in (("30min", 1_800_000_000), ("1s", 60_000_000), ("never", 0)):
        found = read_workspace(written(tmp_path, f'[watch]\nevery = "{text}"\n'), {})
        assert found.watch.every_us == expected
