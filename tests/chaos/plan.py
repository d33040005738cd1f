"""What a round of chaos consists of: all that its seed decides before it begins.

    plan.py --self-test    checks that the rounds of the short form reach everything
    plan.py --find         prints seeds for SHORT_SEEDS, after a change of this file
"""
import dataclasses
import itertools
import random
import sys

STORES = ("sqlite", "redis", "postgres", "memory")
# The programs of servers; "threads" is the one in Python whose handlers run on threads.
SERVERS = ("c", "python", "threads", "node")
LANGUAGES = {"c": "c", "python": "python", "threads": "python", "node": "node"}
CLIENTS = ("c", "python", "node")
MODES = ("E", "S", "P", "PN", "D", "Z", "K")
# (segments, largest size in bytes, pace in us, calls at a time)
SHAPES = ((40, 10, 5000, 6), (100, 300, 10000, 8), (12, 65536, 20000, 3),
          (4, 1048576, 50000, 2))
LABEL_BYTES = 300  # what a segment has on the wire besides its bytes
PASS_SECONDS = 20
# The rounds of the short form; `self_test` says what they must reach.
SHORT_SEEDS = (198, 545, 3905, 603, 5, 6, 9, 11)


@dataclasses.dataclass(frozen=True)
class Client:
    kind: str
    mode: str
    shape: tuple
    seed: int


@dataclasses.dataclass(frozen=True)
class Plan:
    store: str
    servers: tuple
    clients: tuple
    proxy: tuple  # arguments of the cutting proxy


def least_piece(shapes, delay_ms):
    """Returns the least size of the proxy's pieces with which the longest call passes in
    PASS_SECONDS. A piece has half of its size on average."""
    longest = max(count * (size + LABEL_BYTES) for count, size, _, _ in shapes)
    largest = max(size for _, size, _, _ in shapes)
    return max(largest // 256, round(2 * longest * delay_ms / 1000 / PASS_SECONDS))


def plan_proxy(chance, shapes):
    least = chance.choice((200, 3000, 60000))
    arguments = ["--seed", chance.randrange(1 << 31), "--every", f"{least}-{least * 20}",
                 "--how", chance.choice(("fin", "rst"))]
    delay_ms = chance.choice((1, 5, 20)) if chance.random() < 0.3 else 0
    if delay_ms:
        arguments += ["--delay", delay_ms]
    if chance.random() < 0.3:
        pieces = chance.choice((1, 7, 100))
        arguments += ["--pieces", max(pieces, least_piece(shapes, delay_ms))]
    return tuple(map(str, arguments))


def make(seed, stores=STORES, servers=SERVERS, clients=CLIENTS * 2, modes=MODES):
    """Returns the plan of the round with this seed. A store in memory has one server."""
    chance = random.Random(seed)
    store = chance.choice(stores)
    count = 1 if store == "memory" else chance.choice((1, 1, 2))
    chosen = tuple(chance.choice(servers) for _ in range(count))
    made = tuple(Client(kind, chance.choice(modes), chance.choice(SHAPES),
                        chance.randrange(1 << 31)) for kind in clients)
    shapes = [client.shape for client in made]
    return Plan(store, chosen, made, plan_proxy(chance, shapes))


# ---- what the short form reaches ----


def reached(plan):
    """Yields what a round reaches."""
    languages = {LANGUAGES[server] for server in plan.servers}
    for server in plan.servers:
        yield "server", server
    for language in languages:
        yield "store", plan.store, language
    if len(plan.servers) > 1:
        yield "two servers", plan.store
        yield "languages of two servers", len(languages)
    for client in plan.clients:
        yield "client", client.kind, client.mode
        yield "shape", client.shape
        for language in languages:
            yield "dialect", language, client.mode


def wanted():
    languages = sorted(set(LANGUAGES.values()))
    return {*(("server", server) for server in SERVERS),
            *(("store", *pair) for pair in itertools.product(STORES[:3], languages)),
            ("store", "memory", "python"), ("store", "memory", "node"),
            *(("two servers", store) for store in STORES[:3]),
            ("languages of two servers", 2),
            *(("client", *pair) for pair in itertools.product(CLIENTS, MODES)),
            *(("shape", shape) for shape in SHAPES),
            *(("dialect", *pair) for pair in itertools.product(languages, MODES))}


def find(tried=20000):
    """Returns few seeds that reach everything: each reaches the most that is left."""
    left, seeds = wanted(), []
    while left:
        best = max(range(1, tried), key=lambda seed: len(left & {*reached(make(seed))}))
        left -= {*reached(make(best))}
        seeds.append(best)
    return tuple(seeds)


def self_test():
    found = {item for seed in SHORT_SEEDS for item in reached(make(seed))}
    assert not wanted() - found, f"not in the short form: {wanted() - found}"
    for seed in range(1000):
        plan = make(seed)
        assert plan == make(seed), "a seed has one plan"
        assert plan.store != "memory" or len(plan.servers) == 1


def main():
    if sys.argv[1:] == ["--find"]:
        print(find())
    elif sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
