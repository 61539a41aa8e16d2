"""Bundles: what is written is read, and whatever was damaged or made by somebody else is not."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karat.errors import InputError
from karat.formats.own import bundle

FILES = {"a.txt": b"one\n" * 100, "runs/é b.parquet": bytes(range(256)), "empty": b""}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A bundle of each kind."""
    folder = tmp_path_factory.mktemp("bundles")
    for ending in bundle.ENDINGS:
        with bundle.writing(folder / f"b{ending}", {"made": "today"}) as writing:
            for name, data in FILES.items():
                (folder / "file").write_bytes(data)
                writing.add(name, folder / "file")
    return {ending: (folder / f"b{ending}").read_bytes() for ending in bundle.ENDINGS}


def read(path: Path) -> dict[str, bytes]:
    about = bundle.checked(path)
    assert about["made"] == "today"
    return {name: stream.read() for name, stream in bundle.entries(path)}


@pytest.mark.parametrize("ending", bundle.ENDINGS)
def test_what_was_written_is_read(made: dict[str, bytes], tmp_path: Path, ending: str) -> None:
    path = tmp_path / "any name"  # told by its content
    path.write_bytes(made[ending])
    assert read(path) == FILES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ending=st.sampled_from(bundle.ENDINGS), where=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_flipped_bit_is_told_or_changes_nothing(
    made: dict[str, bytes], tmp_path: Path, ending: str, where: float, bit: int
) -> None:
    data = bytearray(made[ending])
    data[min(int(where * len(data)), len(data) - 1)] ^= 1 << bit
    path = tmp_path / "flipped"
    path.write_bytes(bytes(data))
    try:
        found = read(path)
    except InputError:
        return
    assert found == FILES  # the bit was of a time, a mode, or padding


@pytest.mark.parametrize("ending", bundle.ENDINGS)
def test_one_that_was_cut_off_is_refused(
    made: dict[str, bytes], tmp_path: Path, ending: str
) -> None:
    path = tmp_path / "cut"
    for share in (0.0, 0.1, 0.5, 0.9):
        path.write_bytes(made[ending][: int(share * len(made[ending]) * 0.5)])
        with pytest.raises(InputError):
            bundle.checked(path)


NAMES = ["../evil", "/etc/passwd", "a/../../evil", "a//b", "C:evil", "a\\..\\evil", "", "a\nb", "."]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    assert not bundle.is_safe(name)
    path = tmp_path / "bad.tar"
    with tarfile.open(path, "w") as archive:
        head = tarfile.TarInfo(name)
        head.size = 4
        archive.addfile(head, io.BytesIO(b"evil"))
    with pytest.raises(InputError, match="not a karat backup"):
        bundle.checked(path)
    if name:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo(name), b"evil")
        with pytest.raises(InputError, match="not a karat backup"):
            bundle.checked(path)


def test_links_devices_folders_and_twins_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE):
        with tarfile.open(path, "w") as archive:
            head = tarfile.TarInfo("inside")
            head.type, head.linkname = kind, "/etc/passwd"
            archive.addfile(head)
        with pytest.raises(InputError, match="not a karat backup: unexpected entry"):
            bundle.checked(path)
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("inside")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="not a karat backup: unexpected entry"):
        bundle.checked(path)
    with tarfile.open(path, "w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("twice"))
    with pytest.raises(InputError, match="not a karat backup: unexpected entry"):
        bundle.checked(path)


def test_a_bomb_is_refused_before_it_expands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "_BOMB_FROM", 1 << 20)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"\0" * (2 << 20))
    with pytest.raises(InputError, match="expands more than 250 times"):
        bundle.checked(path)


def test_a_zip_that_lies_about_sizes_is_refused(made: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "lies.zip"
    data = made[".zip"]
    size = len(FILES["a.txt"]).to_bytes(4, "little")
    path.write_bytes(data.replace(size, b"\1\0\0\0"))
    with pytest.raises(InputError):
        bundle.checked(path)


def test_a_bundle_that_is_not_finished_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    (tmp_path / "file").write_text("x")
    with bundle.writing(path, {}) as writing, pytest.raises(InputError, match="of this name"):
        writing.add("../x", tmp_path / "file")
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"), bundle.writing(path, {}) as writing:
        writing.add("x", tmp_path / "none")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
