"""In front of a slow store: a cache of what is there, and a filter for what is not."""

import sqlite3
import sys

from filters import CuckooFilter


class Guarded:
    """A store that is asked for nothing twice, and hardly ever for what it has not."""

    def __init__(self, store, capacity):
        self.store = store
        self.asked = 0
        self.cache = {}
        self.known = CuckooFilter.with_capacity(capacity, fpr=0.001)
        self.known.update(key for (key,) in store.execute("select key from pairs"))

    def get(self, key):
        if not self.known.might_contain(key):
            return None
        if key not in self.cache:
            self.asked += 1
            row = self.store.execute("select value from pairs where key = ?", (key,)).fetchone()
            self.cache[key] = row[0] if row else None
        return self.cache[key]

    def put(self, key, value):
        inserted = self.store.execute("insert or ignore into pairs values (?, ?)", (key, value))
        if inserted.rowcount:
            self.known.add(key)  # once: a cuckoo filter has a copy of each
        else:
            self.store.execute("update pairs set value = ? where key = ?", (value, key))
        self.cache[key] = value

    def delete(self, key):
        if self.store.execute("delete from pairs where key = ?", (key,)).rowcount:
            self.known.remove(key)  # only what is there
        self.cache.pop(key, None)


def main(count=20_000):
    store = sqlite3.connect(":memory:")
    store.execute("create table pairs (key primary key, value)")
    store.executemany("insert into pairs values (?, ?)", ((f"user-{n}", n) for n in range(count)))
    users = Guarded(store, capacity=2 * count)

    assert [users.get(f"user-{n}") for n in range(count)] == list(range(count))
    users.asked = 0
    assert not any(users.get(f"guest-{n}") for n in range(count))
    assert users.asked / count < 0.003
    users.put("guest-1", "Ada")
    users.delete("user-1")
    assert (users.get("guest-1"), users.get("user-1")) == ("Ada", None)
    print(f"{users.asked:,} of {count:,} absent keys came to the store")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
