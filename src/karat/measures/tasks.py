"""Which measures for which task, and why: the advice a newcomer asks for first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """One measure recommended for a task.

    Attributes:
        measure: Its name, ready to type.
        why: The reason, in one sentence.
    """

    measure: str
    why: str


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of search, and how to measure it.

    Attributes:
        name: As typed after ``--for``.
        title: What it is.
        users: What its users do with a ranking.
        advice: Measures, most important first.
        beware: What misleads here.
    """

    name: str
    title: str
    users: str
    advice: tuple[Advice, ...]
    beware: str


TASKS = (
    Task(
        "rag",
        "retrieval for generated answers",
        "a language model reads the first k passages, all of them",
        (
            Advice("R@10", "what is not among the k passages cannot be in the answer: set k to "
                   "what your prompt holds"),
            Advice("Success@10", "the share of questions with any usable passage at all"),
            Advice("nDCG@10", "graded passages, and models still read early ones better"),
            Advice("P@5", "noise costs tokens and misleads the model"),
            Advice("Ceiling(nDCG@10, depth=100)", "what a perfect reranker could still win: "
                   "retrieval or reranking, which to work on"),
        ),
        "rank alone matters little once the passage is in the prompt: do not tune on RR; fold "
        "chunks into documents (--collapse parent_id) before you compare chunk sizes",
    ),
    Task(
        "code",
        "code and API search",
        "a programmer wants one right symbol and looks at the first screen",
        (
            Advice("RR@10", "there is usually one right answer, and its rank is the cost"),
            Advice("Success@5", "whether the first screen was enough"),
            Advice("nDCG@10", "where close relatives (overloads, wrappers) have partial grades"),
        ),
        "exact names and questions in words are two populations: always look at them apart (--by)",
    ),
    Task(
        "product",
        "product search",
        "a shopper compares several items of one or two screens",
        (
            Advice("nDCG(gain=exp)@10", "a perfect match is worth far more than a near one"),
            Advice("P(rel=2)@5", "bad items on the first screen cost trust"),
            Advice("ERR(max=3)@10", "a shopper who has found the right item looks no further"),
            Advice("R@100", "the candidates that ranking by price, stock or margin works on"),
        ),
        "head and tail queries behave differently: weigh queries by traffic and slice by frequency",
    ),
    Task(
        "faq",
        "questions with one known answer",
        "a customer reads the first answer, rarely the third",
        (
            Advice("RR@10", "one right entry: how far down is it"),
            Advice("Success@1", "the first answer is often the only one read"),
            Advice("Success@3", "a list of three suggestions"),
        ),
        "questions without any answer need their own row: a system that always answers looks good "
        "here and is not",
    ),
    Task(
        "legal",
        "legal, patent and systematic review search",
        "an expert reads on until nothing is left out",
        (
            Advice("R@1000", "what is missed may decide the case"),
            Advice("Rprec", "precision at the depth where everything could have been found"),
            Advice("AP", "order matters over the whole list"),
            Advice("Judged@100", "unjudged documents count as not relevant: know how many"),
        ),
        "recall is over judged documents only; documents nobody retrieved are counted as if they "
        "did not exist",
    ),
    Task(
        "research",
        "comparing systems on a test collection",
        "a reader compares your table with other papers",
        (
            Advice("nDCG@10", "the usual number for graded judgments"),
            Advice("AP", "the usual number for deep binary judgments"),
            Advice("RR@10", "the usual number on MS MARCO"),
            Advice("Bpref", "where judgments are incomplete"),
            Advice("RBPresid(p=0.8)", "how much of RBP(p=0.8) is still open to judgment"),
            Advice("R@1000", "first-stage retrieval"),
        ),
        "say the tool and its version: --compat trec_eval-9 prints what papers print; say how ties "
        "were broken and how many results were judged",
    ),
)  # fmt: skip
