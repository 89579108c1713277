"""Files are written all or not at all."""

import os
import threading
from pathlib import Path

import pytest

from liftpy.errors import LiftError
from liftpy.files import writing
from liftpy.files.writing import write_file, write_files


def listing(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_a_new_folder_has_all_files(tmp_path):
    write_files(tmp_path / "x" / "new", {"a": b"1", "sub/b": b"2"})
    assert listing(tmp_path / "x") == ["new", "new/a", "new/sub", "new/sub/b"]
    assert (tmp_path / "x" / "new" / "sub" / "b").read_bytes() == b"2"


def test_a_folder_that_is_there_keeps_what_else_it_has(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a").write_text("old")
    write_files(tmp_path, {"a": b"1", "sub/b": b"2"})
    assert listing(tmp_path) == ["a", "mine", "sub", "sub/b"]
    assert (tmp_path / "a").read_bytes() == b"1"


@pytest.mark.parametrize("there", [True, False])
def test_what_cannot_be_written_whole_is_not_begun(tmp_path, there):
    folder = tmp_path / "out"
    if there:
        folder.mkdir()
        (folder / "a").write_text("old")
    with pytest.raises(LiftError, match=r"out cannot be written: File name too long"):
        write_files(folder, {"a": b"1", "b" * 300: b"2"})
    assert listing(tmp_path) == (["out", "out/a"] if there else [])
    assert not there or (folder / "a").read_text() == "old"


def test_a_folder_in_the_place_of_a_file_keeps_the_others_as_they_were(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_text("old")
    with pytest.raises(LiftError, match=r"cannot be written: it has a folder named b"):
        write_files(tmp_path, {"a": b"1", "b": b"2"})
    assert listing(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "old"


def test_what_does_not_fit_on_the_disk_is_not_begun(tmp_path, monkeypatch):
    usage = writing.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(writing.shutil, "disk_usage", lambda _: usage._replace(free=3))
    with pytest.raises(LiftError, match=r"4 bytes are needed, and the disk has 3 free"):
        write_files(tmp_path / "out", {"a": b"12", "b": b"34"})
    (tmp_path / "a").write_text("old")
    with pytest.raises(LiftError, match=r"4 bytes are needed, and the disk has 3 free"):
        write_file(tmp_path / "a", b"1234")
    assert listing(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_file_is_replaced_where_a_link_leads(tmp_path):
    (tmp_path / "to").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "to")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "to").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_a_pipe_gets_what_is_written(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    came = []
    reader = threading.Thread(target=lambda: came.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_file(tmp_path / "pipe", b"new")
    reader.join()
    assert came == [b"new"]


def test_a_folder_that_is_missing_is_said(tmp_path):
    with pytest.raises(LiftError, match=r"there is no folder .*none: create it first"):
        write_file(tmp_path / "none" / "a", b"")


def test_what_is_no_file_takes_what_comes_by_whatever_name():
    reading, writing_end = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        with os.fdopen(writing_end, "wb"):
            write_file(Path(f"/dev/fd/{writing_end}"), b"1")  # as `-o /dev/stdout`, `-o >(cat)`
        assert pipe.read() == b"1"
