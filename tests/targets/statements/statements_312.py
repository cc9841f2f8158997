# SPDX-License-Identifier: MIT
"""What 3.12 was the first to compile; see statements.py."""
from statements import stated


@stated
def nested_texts(spot):
    value = f"{spot()!r:>{
        spot(3)
    }} {
        f"{
            spot()
        }"
    }"
    return f'{
        spot()} {spot(
            value)}'


@stated
def type_parameters(spot):
    type Alias[T: (int,
                   spot(str))] = spot(
                       list)

    def generic[T: spot(int)](
            x: T = spot()) -> \
            spot(T):
        return spot(
            x)

    class Kind[T](
            spot(dict)):
        field = spot()

    return generic(), Kind, Alias.__value__, Alias.__type_params__[
        0].__constraints__, generic.__annotations__
