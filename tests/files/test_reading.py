"""What is no file, or too large, is refused before it is read."""

import os
import socket
from pathlib import Path

import pytest

from liftpy.errors import LiftError, ResultsRefused
from liftpy.files.reading import read_text, toml


def test_a_text_is_read(tmp_path):
    (tmp_path / "a").write_text("größe\n", encoding="utf-8")
    assert read_text(tmp_path / "a", 8) == "größe\n"


def refusal(path, most=100, kind=LiftError):
    with pytest.raises(kind) as refused:
        read_text(path, most, kind)
    return str(refused.value).removeprefix(f"{path} cannot be read: ")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "it is a pipe, not a file"


def test_a_device_is_not_read(tmp_path):
    assert refusal(Path("/dev/zero")) == "it is a device, not a file"
    (tmp_path / "link").symlink_to("/dev/zero")
    assert refusal(tmp_path / "link") == "it is a device, not a file"


def test_a_socket_and_a_folder_are_no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("door")
        assert refusal(tmp_path / "door") == "No such device or address"
    assert refusal(tmp_path) == "it is a folder, not a file"


def test_a_file_of_any_size_is_refused_by_its_size(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)  # it has holes, and takes no room
    assert refusal(tmp_path / "huge", 1 << 20, ResultsRefused).startswith(
        "it has 1099511627776 bytes, and at most 1048576 (1 MiB) are read"
    )


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    assert refusal(tmp_path / "a\0b") == "embedded null byte"
    assert refusal(tmp_path / ("a" * 300)) == "File name too long"


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff")
    assert refusal(tmp_path / "a") == "it is not UTF-8 text (invalid start byte)"


def test_toml_with_a_key_of_many_parts_is_refused_at_once():
    """`tomllib` takes time quadratic in the number of parts: minutes for this text."""
    assert toml("a.b = 1\nc = 'x.y'", "it") == {"a": {"b": 1}, "c": "x.y"}
    ends = '"\u2028"' + '."\u2028"' * 200_000  # Python's `splitlines` ends a line at each
    for text in ("x" + ".x" * 200_000 + " = 1", "\n[x" + ".x" * 200_000 + "]", f"{ends} = 1"):
        with pytest.raises(LiftError, match="more than 50"):
            toml(text, "it")
