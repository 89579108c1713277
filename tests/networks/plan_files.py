"""Plans' files with changed contents."""

import hashlib
import json

from liftpy.networks.plan_file import FORMAT, HEADER, MAGIC


def rewritten(data, change):
    """A plan's file with changed fields and a right checksum."""
    length = int.from_bytes(data[44:HEADER], "little")
    fields = json.loads(data[HEADER : HEADER + length])
    change(fields)
    text = json.dumps(fields).encode()
    rest = len(text).to_bytes(8, "little") + text + data[HEADER + length :]
    return MAGIC + FORMAT.to_bytes(4, "little") + hashlib.sha256(rest).digest() + rest
