import pickle

import numpy as np

from mixtures.buffers import Buffers


def place(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_that_nobody_holds_is_used_again():
    buffers = Buffers(3)
    first = place(buffers.take(2, 4)[0])
    assert place(buffers.take(2, 4)[0]) == first
    shapes = [array.shape for array in buffers.take(2, 4)]
    assert shapes == [(2, 4)] * 4


def test_memory_of_which_a_part_is_held_is_left_alone():
    buffers = Buffers(3)
    tokens, _, _, mask = buffers.take(2, 4)
    mask[:] = True
    held = memoryview(mask[1:, ::2])
    first = place(tokens)
    del tokens, mask, _
    other = buffers.take(2, 4)
    other[3][:] = False
    assert place(other[0]) != first and held.tolist() == [[True, True]]
    del held
    assert place(buffers.take(2, 4)[0]) == first


def test_no_more_memory_is_kept_than_was_said():
    buffers = Buffers(2)
    held = [buffers.take(1, 8) for _ in range(5)]
    assert len({place(tokens) for tokens, *_ in held}) == 5 and len(buffers._memory) == 2
    assert buffers.take(1, 9)[0].shape == (1, 9)


def test_buffers_travel_to_another_process_empty():
    buffers = Buffers(2)
    buffers.take(1, 8)
    assert not pickle.loads(pickle.dumps(buffers))._memory
