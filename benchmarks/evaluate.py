"""karat evaluate beside its peers: from files, from Parquet, and with tables loaded; and what
tie bands and unjudged bounds cost, which no peer has.

    python benchmarks/evaluate.py [--peers PYTHON] [--trec-eval BINARY] [--rounds N] [DIR]

Prints the table of docs/explanation/benchmarks.md: figures with their ratios to karat, taken round
by round, as the machine's speed drifts (by how much is printed too). Beside other work, compare the
seconds of the processor. Peers (pytrec_eval-terrier, ir_measures, ranx) are run by the interpreter
given with --peers, or by this one; what is not installed there is left out, saying so. Six
measures: nDCG@10, RR, P@10, R@100, AP, Bpref (ranx has no usable bpref on binary judgments, and
gets Rprec instead).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

import generate
import timing

MEASURES = ("nDCG@10", "RR", "P@10", "R@100", "AP", "Bpref")
_NAMES = [argument for measure in MEASURES for argument in ("-m", measure)]
_KARAT = "import sys; from karat.cli.main import main; sys.argv[0] = 'karat'; main()"

PYTREC_EVAL = """
import sys, time, pytrec_eval
with open(sys.argv[1]) as f: qrels = pytrec_eval.parse_qrel(f)
with open(sys.argv[2]) as f: run = pytrec_eval.parse_run(f)
names = {'ndcg_cut_10', 'recip_rank', 'P_10', 'recall_100', 'map', 'bpref'}
evaluator = pytrec_eval.RelevanceEvaluator(qrels, names)
found = evaluator.evaluate(run)
print('nDCG@10', sum(v['ndcg_cut_10'] for v in found.values()) / len(found))
if len(sys.argv) > 3:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        evaluator.evaluate(run)
        times.append(time.perf_counter() - start)
    print('alone', sorted(times)[1])
"""
IR_MEASURES = """
import sys, ir_measures
from ir_measures import AP, P, R, RR, Bpref, nDCG
found = ir_measures.calc_aggregate(
    [nDCG@10, RR, P@10, R@100, AP, Bpref],
    ir_measures.read_trec_qrels(sys.argv[1]), ir_measures.read_trec_run(sys.argv[2]))
print('nDCG@10', found[nDCG@10])
"""
RANX = """
import sys
from ranx import Qrels, Run, evaluate
qrels = Qrels.from_file(sys.argv[1], kind='trec')
run = Run.from_file(sys.argv[2], kind='trec')
found = evaluate(
    qrels, run, ['ndcg@10', 'mrr', 'precision@10', 'recall@100', 'map', 'r-precision'],
    make_comparable=True)
print('nDCG@10', found['ndcg@10'])
"""
KARAT_ALONE = """
import sys, time, karat
from karat.measures import parse_all, reduce
qrels, run = karat.read_qrels(sys.argv[1]), karat.read_run(sys.argv[2])
measures = parse_all(['nDCG@10', 'RR', 'P@10', 'R@100', 'AP', 'Bpref'])
times = []
for _ in range(4):
    start = time.perf_counter()
    evidence = reduce(run, qrels)
    values = [measure(evidence) for measure in measures]
    times.append(time.perf_counter() - start)
print('nDCG@10', values[0].mean())
print('alone', sorted(times[1:])[1])
"""
TO_PARQUET = """
import sys, karat
karat.write_run(karat.read_run(sys.argv[1]), sys.argv[2])
"""


def main() -> None:
    """Measure everything in turn and print seconds, memory and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default="benchmarks/data", type=Path)
    parser.add_argument("--peers", default=sys.executable, help="interpreter that has the peers")
    parser.add_argument("--trec-eval", help="a trec_eval binary")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    qrels, run = map(str, generate.generate(options.folder))
    parquet = str(options.folder / "big.parquet")
    if not Path(parquet).exists():
        subprocess.run([sys.executable, "-c", TO_PARQUET, run, parquet], check=True)

    tied = str(generate.tied(options.folder))
    small = map(str, generate.small(options.folder))

    karat = [sys.executable, "-c", _KARAT, "evaluate"]
    json = [*_NAMES, "--format", "json"]
    commands = {
        "karat, TREC text": [*karat, qrels, run, *json],
        "karat, Parquet": [*karat, qrels, parquet, *json],
        "- no bounds": [*karat, qrels, run, *json, "--no-bounds"],
        "- tied scores": [*karat, qrels, tied, *json],
        "- 50 queries, table": [*karat, *small, *_NAMES],
    }
    rounds = dict.fromkeys(commands, options.rounds)
    for name, script, turns in (
        ("pytrec_eval", PYTREC_EVAL, options.rounds),
        ("ir_measures", IR_MEASURES, 1),
        ("ranx", RANX, 1),
    ):
        probe = [options.peers, "-c", f"import {name}"]
        if subprocess.run(probe, capture_output=True, check=False).returncode:
            print(f"{name} is not installed for {options.peers}: left out")
            continue
        commands[name], rounds[name] = [options.peers, "-c", script, qrels, run], turns
    if options.trec_eval:
        names = ("ndcg_cut.10", "recip_rank", "P.10", "recall.100", "map", "bpref")
        asked = [argument for name in names for argument in ("-m", name)]
        commands["trec_eval"] = [options.trec_eval, *asked, qrels, run]
        rounds["trec_eval"] = options.rounds
    taken = timing.in_turn(commands, rounds)

    _show(taken)
    if "pytrec_eval" in taken:
        alone = _alone([sys.executable, "-c", KARAT_ALONE, qrels, run])
        theirs = _alone([options.peers, "-c", PYTREC_EVAL, qrels, run, "alone"])
        print(
            f"evaluation alone, tables loaded: karat {alone:.3f} s, pytrec_eval {theirs:.3f} s, "
            f"ratio {theirs / alone:.1f}x"
        )


def _show(taken: dict[str, timing.Timing]) -> None:
    text, packed = taken["karat, TREC text"], taken["karat, Parquet"]
    print("| | seconds | (min–max) | CPU s | MB | × text | CPU | MB | × Parquet | CPU |")
    print(f"| --- |{' ---: |' * 9}")
    for name, took in taken.items():
        print(
            f"| {name} | {took.seconds:.2f} | {took.fastest:.2f}–{took.slowest:.2f} "
            f"| {statistics.median(took.processor):.2f} | {took.megabytes:.0f} "
            f"| {took.times(text):.1f} | {took.processor_times(text):.1f} "
            f"| {took.megabytes / text.megabytes:.2f} "
            f"| {took.times(packed):.1f} | {took.processor_times(packed):.1f} |"
        )
    drift = max(took.slowest / took.fastest for took in taken.values())
    print(f"\nDrift: the slowest round of a row took up to {drift:.2f} times its fastest.")


def _alone(command: list[str]) -> float:
    *_, last = timing.once(command)[2].split()
    return float(last)


if __name__ == "__main__":
    main()
