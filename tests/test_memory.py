"""The memory that may be taken: the machine's, or what its container has left."""

from types import SimpleNamespace

import pytest

from liftpy import memory

FREE = 8 << 30


@pytest.mark.parametrize("names", memory.FILES, ids=["version 2", "version 1"])
@pytest.mark.parametrize(
    ("limit", "used", "unused", "left"),
    [
        ("1000", 700, 0, 300),
        ("1000", 700, 200, 500),  # files in the cache give way
        ("1000", 1100, 0, 0),
        (str(FREE * 2), 700, 0, FREE),
        ("max", 700, 0, FREE),
        ("9223372036854771712", 700, 0, FREE),  # no limit, in version 1
    ],
)
def test_a_container_has_what_its_limit_leaves(
    tmp_path, monkeypatch, names, limit, used, unused, left
):
    free = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=FREE))
    monkeypatch.setattr(memory, "psutil", free)
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    assert memory.available() == FREE, "there is no container"
    stat = f"anon 5\ninactive_file {unused}\ntotal_inactive_file {unused}\nactive_file 7\n"
    for name, text in zip(names[:3], (f"{limit}\n", f"{used}\n", stat), strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory.available() == left
