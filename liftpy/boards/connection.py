"""One ssh connection for all commands of a campaign, since a new one takes longer than a candidate.

The first command of ssh opens it and leaves a process that holds it (`ControlMaster`), which the
others reach by a socket in a private folder. If this process dies, the next command opens another.
"""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from liftpy.boards.transports import Transport

PERSIST = 60
"""Seconds without a command after which a connection ends, also if liftpy was killed."""

PLAIN = re.compile(r"/[A-Za-z0-9._/-]*")
"""Paths in which ssh expands nothing, such as `%h`."""

DRAFT = ".0123456789abcdef"  # ssh appends a suffix of this length to the path of a new socket
NAME = "liftpy-ssh-"


@contextmanager
def one_connection(transport: Transport) -> Generator[Transport]:
    """The transport whose commands share one connection of ssh, which ends with the context.

    The transport is unchanged if it does not use ssh, if the user's ssh configuration already holds
    a connection, or if no folder for temporary files can hold a socket.
    """
    own = transport.controlling and not transport.control("check")
    folder = folder_of_sockets() if own else None
    if folder is None:
        yield transport
        return
    with tempfile.TemporaryDirectory(prefix=NAME, dir=folder) as private:
        shared = transport.with_options(
            *("-o", "ControlMaster=auto"),
            *("-o", f"ControlPath={private}/ssh"),
            *("-o", f"ControlPersist={PERSIST}"),
        )
        try:
            yield shared
        finally:  # one that does not answer ends after PERSIST seconds
            shared.control("exit")


def folder_of_sockets() -> str | None:
    """The folder of temporary files, or else /tmp, if ssh can have a socket in it."""
    folders = (tempfile.gettempdir(), "/tmp")  # noqa: S108  the socket's folder there is private
    return next((f for f in folders if PLAIN.fullmatch(f) and has_sockets(f)), None)


def has_sockets(folder: str) -> bool:
    """Whether a new socket can be made and linked in a folder, as ssh does.

    If its path is too long, or the file system has no sockets, ssh would end without a connection.
    """
    try:
        with (
            tempfile.TemporaryDirectory(prefix=NAME, dir=folder) as private,
            socket.socket(socket.AF_UNIX) as made,
        ):
            path = f"{private}/ssh"
            made.bind(path + DRAFT)
            os.link(path + DRAFT, path)
    except OSError:
        return False
    return True
