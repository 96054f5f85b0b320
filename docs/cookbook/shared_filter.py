"""One filter in shared memory, asked by many processes, none of which copies it."""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.shared_memory import SharedMemory

from filters import BinaryFuseFilter


def share(found):
    data = bytes(found)
    memory = SharedMemory(create=True, size=len(data))
    memory.buf[: len(data)] = data
    return memory


def count_maybe(name, size, keys):
    """What a process does: of bytes that nobody can change, a filter is a view."""
    memory = SharedMemory(name)
    found = BinaryFuseFilter.from_bytes(memory.buf[:size].toreadonly())
    answer = sum(found.might_contain_many(keys))
    del found  # before the memory that it looks at
    memory.close()
    return answer


def main(count=200_000):
    users = [f"user-{number}" for number in range(count)]
    guests = [f"guest-{number}" for number in range(count)]
    found = BinaryFuseFilter.build(users)
    size = found.size_in_bytes
    memory = share(found)
    try:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            known, passed = pool.map(count_maybe, [memory.name] * 2, [size] * 2, [users, guests])
    finally:
        memory.close()
        memory.unlink()

    assert known == count
    assert passed / count < 0.008  # it is made to pass 1 of 256
    print(f"{size:,} bytes, once; {passed / count:.2%} of guests pass")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
