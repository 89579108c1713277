"""The schema of a board's results: types, ranges and lengths of all fields, and no unknown keys.

The ranges ensure that numbers fit into the columns of the database and the arithmetic of a front.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from liftpy.boards.outcomes import OutcomeName
from liftpy.constraints.device import Kind
from liftpy.constraints.draw import Sampler

Text = Annotated[str, StringConstraints(max_length=1000)]
LongText = Annotated[str, StringConstraints(max_length=1 << 20)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
Whole = Annotated[int, Field(ge=-(2**62), le=2**62)]
Natural = Annotated[int, Field(ge=0, le=2**62)]
Positive = Annotated[int, Field(ge=1, le=2**62)]
Nanoseconds = Annotated[int, Field(ge=1, le=10**15)]
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]

M = TypeVar("M", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DeviceFields(_Strict):
    """A device, as `Device.to_json` writes it and `board` prints it. Profiles are refused."""

    name: Text
    vendor: Text
    platform: Text
    driver_version: Text
    opencl_c: Text
    type: Kind
    compute_units: Positive
    max_work_group_size: Positive
    max_work_item_sizes: Annotated[list[Positive], Field(min_length=3, max_length=3)]
    local_memory: Natural
    largest_buffer: Positive
    global_memory: Positive
    vector_width: Positive
    ordinal: Annotated[int, Field(ge=0, le=1000)] = 0
    extensions: Annotated[list[Word], Field(max_length=1000)] = []
    private_memory: Positive = 1
    image_texels: Natural = 0
    profile: Annotated[str, StringConstraints(max_length=0)] = ""
    fingerprint: Id | None = None


class Settings(_Strict):
    """The settings of a campaign, as `identity_of` returns them."""

    input_seed: Natural
    points: Annotated[int, Field(ge=1, le=1 << 20)]
    tolerance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    families: Annotated[list[Word], Field(max_length=100)] | None = None
    memory_limit: Positive | None = None
    max_error: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    winograd_points: Text | None = None
    check: None = None
    sampler: Sampler = "uniform"
    sizes: dict[Word, Natural] | None = None
    conditions: Annotated[list[Text], Field(max_length=100)] | None = None
    search: Word = "random"
    lag: Annotated[int, Field(ge=1, le=1 << 20)] = 1
    first: Literal["plain"] | None = None
    direct_first: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    times: Annotated[list[Text], Field(max_length=100)] | None = None
    devices: Annotated[list[DeviceFields], Field(max_length=100)] | None = None


class CampaignFields(_Strict):
    """A campaign, as a bundle describes it."""

    program: Word
    text: LongText
    version: Word
    seed: Whole
    settings: Settings


class RowFields(_Strict):
    """A row with parsed cells."""

    candidate: Id
    ordinal: Whole
    skeleton: Text
    sizes: dict[Word, Natural]
    source: Hash
    outcome: OutcomeName
    reason: LongText
    error: Share | None
    rms: Share | None
    build_seconds: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
    prepare_ns: Annotated[int, Field(ge=0, le=10**15)]
    allocated: Natural
    times_ns: Annotated[
        tuple[Annotated[tuple[Nanoseconds, ...], Field(min_length=1, max_length=1000)], ...],
        Field(max_length=10_000),
    ]
    detail: Annotated[tuple[tuple[Word, Text], ...], Field(max_length=1000)]


def checked(model: type[M], data: dict[str, Any]) -> M:
    """The data, validated by the model. ValueError with the invalid field and the reason."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ValueError(f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}") from error


def table(text: str) -> dict[str, Any]:
    """Parses a JSON object. ValueError for other data, a repeated key, or NaN and infinity."""
    try:
        data = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004  one error type for all refusals
    return cast("dict[str, Any]", data)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object with these keys and values; ValueError if a key is repeated."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a key twice")
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")
