"""What a command said, and the small program that commands are tried on."""

import json
from dataclasses import dataclass

from liftpy.workloads import Convolution, convolution

PROGRAM = convolution(Convolution(3, 16, 7, 4, (3, 3), (3, 1), (1, 1, 1, 1)), "tiny")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self):
        assert self.code == 0, self.err
        return json.loads(self.out)
