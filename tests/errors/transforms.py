"""What is refused of Winograd's transforms: from Python, and by the command."""

from dataclasses import replace
from fractions import Fraction

from liftpy.winograd.error import bound_of, check_error
from liftpy.winograd.matrices import matrix
from liftpy.winograd.triple import Triple, cook_toom
from tests.errors.embedded import Case

F23 = cook_toom(2, 3)

CASES: dict[str, Case] = {
    "transform_with_equal_points": lambda _: cook_toom(4, 3, (0, 1, -1, 2, 1)),
    "transform_with_too_few_points": lambda _: cook_toom(4, 3, (0, 1, -1)),
    "transform_with_too_many_points": lambda _: cook_toom(2, 3, (0, 1, 1, 2, -2)),
    "transform_without_points": lambda _: cook_toom(2, 2, ()),
    "transform_with_a_float": lambda _: cook_toom(2, 3, (0, 1, 0.5)),
    "transform_with_a_decimal_text": lambda _: cook_toom(2, 3, ("0", "1", "-1.5")),
    "transform_with_no_number": lambda _: cook_toom(2, 3, ("0", "1", "infinity")),
    "transform_of_too_many_products": lambda _: cook_toom(7, 3),
    "transform_of_more_taps_than_products": lambda _: cook_toom(2, 7, largest=4),
    "transform_of_one_tap": lambda _: cook_toom(4, 1),
    "transform_of_eight_taps": lambda _: cook_toom(1, 8),
    "transform_of_no_results": lambda _: cook_toom(0, 3),
    "transform_beyond_the_usual_points": lambda _: cook_toom(21, 3, largest=40),
    "transform_with_too_few_factors": lambda _: cook_toom(2, 3, scale=(1, 2)),
    "transform_with_a_factor_of_zero": lambda _: cook_toom(2, 3, scale_output=(1, 0, 1, 1)),
    "transform_with_a_wrong_entry": lambda _: replace(F23, bt=matrix([*F23.bt[:3], (0, 1, 0, 1)])),
    "transform_of_another_shape": lambda _: Triple(2, 3, F23.points, F23.at, F23.g, F23.at),
    "transform_above_the_error": lambda _: check_error(cook_toom(6, 3), Fraction(1, 10**4)),
    "transform_above_the_error_with_better_points": lambda _: check_error(
        cook_toom(4, 3), Fraction("7e-6"), 1
    ),
    "transform_above_the_error_of_channels": lambda _: check_error(
        cook_toom(2, 3), Fraction(1, 10**5), 2, 512
    ),
    "bound_for_no_channels": lambda _: bound_of(F23, 2, 0),
}
