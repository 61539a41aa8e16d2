"""Ten runs compared pair by pair under ten measures, beside ranx.

    python benchmarks/compare.py [--peers PYTHON] [--rounds N] [--permutations N] [--depth N] [DIR]

First, karat compare as a whole process, as a user runs it. Then, step by step: both read the same
ten runs (1,000 queries x 100 documents, or as --depth says, TREC text), score them, and put each of
the 45 pairs to a randomisation test of 10,000 permutations under each of ten measures: Fisher's in
ranx. karat then adds what ranx has not got: a BCa interval of every difference and a studentised
bootstrap test of it, from 10,000 resamples each, and the test of all pairs of runs and measures as
one family, from 10,000 resamples. Reading, scoring and testing are timed apart, inside the
process. ranx compiles as it goes: it compares two runs once, untimed, before it is timed; karat
does everything once, cold. ranx tests each pair twice, as (a, b) and as (b, a): both its time and
half of it are set against karat's. With fewer permutations, ranx's time of testing is scaled up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import timing

RUNS, QUERIES, CORPUS, RELEVANT = 10, 1_000, 1_000_000, 8
PERMUTATIONS = 10_000
MEASURES = {
    "nDCG@10": "ndcg@10",
    "nDCG@100": "ndcg@100",
    "P@5": "precision@5",
    "P@10": "precision@10",
    "R@50": "recall@50",
    "R@100": "recall@100",
    "RR": "mrr",
    "AP": "map",
    "Success@5": "hit_rate@5",
    "Rprec": "r-precision",
}

WHOLE = [sys.executable, "-m", "karat", "compare"]
RANX = """
import json, sys, time
permutations, measures, qrels, *runs = json.loads(sys.argv[1])
from ranx import Qrels, Run, compare, evaluate
from ranx.statistical_tests import compute_statistical_significance as tested
def warm():
    compare(judged, read[:2], measures, stat_test='fisher', n_permutations=10)
start = time.perf_counter()
judged = Qrels.from_file(qrels, kind='trec')
read = [Run.from_file(path, kind='trec') for path in runs]
took = {'read': time.perf_counter() - start}
for number, run in enumerate(read):
    run.name = str(number)
warm()
start = time.perf_counter()
scores = {r.name: evaluate(judged, r, measures, return_mean=False) for r in read}
took['score'] = time.perf_counter() - start
start = time.perf_counter()
found = tested(list(scores), scores, 'fisher', permutations)
took['randomisation'] = time.perf_counter() - start
start = time.perf_counter()
compare(judged, read, measures, stat_test='fisher', n_permutations=1)
took['compare, 1 permutation'] = time.perf_counter() - start
pairs = [(a, b) for a in range(len(read)) for b in range(a)]
p = [[float(found[str(a), str(b)][m]['p_value']) for m in measures] for a, b in pairs]
means = [[float(scores[r.name][m].mean()) for m in measures] for r in read]
print(json.dumps({'took': took, 'p': p, 'means': means}))
"""
KARAT = """
import json, sys, time
permutations, measures, qrels, *runs = json.loads(sys.argv[1])
import numpy as np, karat
from karat.measures import parse_all, reduce
from karat.stats.intervals import bca_intervals, resample
from karat.stats.paired import bootstrap, randomisation
from karat.stats._tukey import tukey_each
took = {}
def clock(name, work):
    start = time.perf_counter()
    found = work()
    took[name] = time.perf_counter() - start
    return found
judged, read = clock('read', lambda: (karat.read_qrels(qrels), [karat.read_run(r) for r in runs]))
def score():
    asked = parse_all(measures)
    found = [[m(evidence) for m in asked] for evidence in (reduce(run, judged) for run in read)]
    return np.array(found).transpose(2, 0, 1)
values = clock('score', score)
pairs = [(a, b) for a in range(len(read)) for b in range(a)]
def differences():
    left, right = np.array(pairs).T
    return (values[:, left] - values[:, right]).reshape(len(values), -1)
columns = clock('differences', differences)
rng = np.random.default_rng(0)
p = clock('randomisation', lambda: randomisation(columns, resamples=permutations, seed=rng))
def intervals():
    return bca_intervals(columns, resample(len(values), permutations, rng))
spans = clock('BCa intervals', intervals)
boot = clock('bootstrap', lambda: bootstrap(columns, resamples=permutations, seed=rng))
each = clock('all pairs', lambda: tukey_each(values, rng, resamples=permutations))
print(json.dumps({
    'took': took, 'p': p.reshape(len(pairs), -1).tolist(), 'means': values.mean(axis=0).tolist(),
}))
"""


def main() -> None:
    """Measure both in turn and print seconds by step, and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default="benchmarks/data", type=Path)
    parser.add_argument("--peers", default=sys.executable, help="interpreter that has ranx")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-rounds", type=int, default=1)
    parser.add_argument(
        "--permutations", type=int, default=PERMUTATIONS, help="of ranx; its time is scaled up"
    )
    parser.add_argument("--depth", type=int, default=100, help="documents of a query")
    options = parser.parse_args()
    files = [str(path) for path in generate(options.folder / str(options.depth), options.depth)]
    whole = [timing.once([*WHOLE, *files]) for _ in range(options.rounds)]
    seconds, megabytes = (statistics.median(each[at] for each in whole) for at in (0, 1))
    print(f"karat compare: {seconds:.2f} s, {megabytes:.0f} MB")
    asked = json.dumps([PERMUTATIONS, list(MEASURES), *files])
    commands = {"karat": [sys.executable, "-c", KARAT, asked]}
    rounds = {"karat": options.rounds}
    probe = [options.peers, "-c", "import ranx"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        print(f"ranx is not installed for {options.peers}: left out")
    else:
        asked = json.dumps([options.permutations, list(MEASURES.values()), *files])
        commands["ranx"] = [options.peers, "-c", RANX, asked]
        rounds["ranx"] = options.peer_rounds
    taken = _in_turn(commands, rounds)
    ours = _medians(taken["karat"])
    _print("karat", ours)
    if "ranx" not in taken:
        return
    theirs = _medians(taken["ranx"])
    if options.permutations != PERMUTATIONS:
        print(f"\nranx: {options.permutations} permutations, scaled up to {PERMUTATIONS}")
        theirs["randomisation"] *= PERMUTATIONS / options.permutations
    _print("ranx", theirs)
    _print_ratios(ours, theirs)
    _print_agreement(taken["karat"][0], taken["ranx"][0])


def generate(folder: Path, depth: int) -> list[Path]:
    """Write judgments and ten runs into a folder, unless they are there; judgments come first.

    A query has eight relevant documents of grade 1; a run finds each with a chance that grows
    from run to run, at a rank that falls; the runs agree in part, as each query has its own ease.
    """
    folder.mkdir(parents=True, exist_ok=True)
    qrels, runs = folder / "ten.qrels", [folder / f"ten-{k}.run" for k in range(RUNS)]
    if all(path.exists() for path in (qrels, *runs)):
        return [qrels, *runs]
    rng = np.random.default_rng(11)
    relevant = np.stack([rng.choice(CORPUS, RELEVANT, replace=False) for _ in range(QUERIES)])
    ease = rng.beta(2, 2, QUERIES)
    with qrels.open("w") as lines:
        lines.writelines(
            f"q{query} 0 d{doc} 1\n" for query, docs in enumerate(relevant) for doc in docs.tolist()
        )
    for k, path in enumerate(runs):
        with path.with_suffix(".part").open("w") as lines:
            for query in range(QUERIES):
                # Apart from the relevant ones, which lie below CORPUS.
                docs = CORPUS + rng.choice(CORPUS, depth, replace=False)
                chance = 0.4 * ease[query] + 0.3 + 0.01 * k
                found = relevant[query][rng.random(RELEVANT) < chance]
                places = np.minimum(rng.geometric(0.03 + 0.1 * ease[query], len(found)), depth) - 1
                docs[places] = found  # of two at one rank, one is lost
                scores = np.sort(rng.gamma(5, 2, depth))[::-1] + 5
                lines.writelines(
                    f"q{query} Q0 d{doc} {rank} {score:.6f} run{k}\n"
                    for rank, (doc, score) in enumerate(
                        zip(docs.tolist(), scores.tolist(), strict=True), 1
                    )
                )
        path.with_suffix(".part").rename(path)
    return [qrels, *runs]


def _in_turn(
    commands: dict[str, list[str]], rounds: dict[str, int]
) -> dict[str, list[dict[str, Any]]]:
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in commands}
    for turn in range(max(rounds.values())):
        for name, command in commands.items():
            if turn < rounds[name]:
                seconds, megabytes, output = timing.once(command)
                found = json.loads(output)
                found["took"] |= {"whole process": seconds, "peak MB": megabytes}
                taken[name].append(found)
                print(f"  {name}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return taken


def _medians(taken: list[dict[str, Any]]) -> dict[str, float]:
    steps = taken[0]["took"]
    return {step: statistics.median(each["took"][step] for each in taken) for step in steps}


def _print(name: str, took: dict[str, float]) -> None:
    print(f"\n{name}")
    for step, seconds in took.items():
        print(f"  {step:24}{seconds:10.3f}")


def _print_ratios(ours: dict[str, float], theirs: dict[str, float]) -> None:
    tests = ours["differences"] + ours["randomisation"]
    everything = tests + ours["BCa intervals"] + ours["bootstrap"] + ours["all pairs"]
    fisher = theirs["randomisation"]
    print(f"\n{'ranx / karat':44}{'ratio':>8}{'each pair once':>16}")
    for label, our, their, half in (
        ("the same tests (randomisation)", tests, fisher, fisher / 2),
        ("ranx: those; karat: and BCa", tests + ours["BCa intervals"], fisher, fisher / 2),
        ("ranx: those; karat: bootstrap, all pairs", everything, fisher, fisher / 2),
        ("scoring", ours["score"], theirs["score"], None),
        (
            "reading, scoring and all of these tests",
            everything + ours["read"] + ours["score"],
            fisher + theirs["read"] + theirs["score"],
            fisher / 2 + theirs["read"] + theirs["score"],
        ),
    ):
        once = "" if half is None else f"{half / our:.1f}x"
        print(f"{label:44}{their / our:7.1f}x{once:>16}")


def _print_agreement(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    means = np.abs(np.array(ours["means"]) - np.array(theirs["means"])).max()
    p_values = np.array(ours["p"]), np.array(theirs["p"])
    print(f"\nlargest difference of a mean {means:.1e}, of a p-value ", end="")
    print(f"{np.abs(p_values[0] - p_values[1]).max():.4f}; p at most 5 %: ", end="")
    print(f"{(p_values[0] <= 0.05).sum()} and {(p_values[1] <= 0.05).sum()} of {p_values[0].size}")


if __name__ == "__main__":
    main()
