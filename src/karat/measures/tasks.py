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
        also: Other names of it.
        policy: For ``karat gate``, to copy, as TOML; empty if there is none.
    """

    name: str
    title: str
    users: str
    advice: tuple[Advice, ...]
    beware: str
    also: tuple[str, ...] = ()
    policy: str = ""


_RAG = """\
[[rule]]
measure = "R@10"   # set 10 to the number of passages that your prompt holds
min = 0.85

# With a baseline: what was found must not get lost.
# [[rule]]
# measure = "R@10"
# max_drop = 0.02
"""

TASKS = (
    Task(
        "one-number",
        "one number for a ranking",
        "somebody asks how good the search is, and reads one number",
        (
            Advice("nDCG@10", "it uses grades and ranks, is 0 to 1 for every query however many "
                   "documents are relevant, looks at what people look at, and is the number that "
                   "trec_eval, BEIR, ranx and ir_measures agree on (linear gain)"),
        ),
        "one number hides who loses: publish n, the interval and Judged@10 with it, and look at "
        "slices (--by). RR sees the first relevant document only, P@10 neither ranks nor grades, "
        "and AP no grades",
        ("one", "single", "summary"),
    ),
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
        "chunks into documents (--collapse parent_id) before you compare chunk sizes; where a "
        "question has more than 10 relevant passages R@10 cannot reach 1, so use Rcap@10",
        ("generation", "retrieval-augmented-generation"),
        _RAG,
    ),
    Task(
        "qa",
        "questions with one known answer",
        "a person reads the first answer, rarely the third",
        (
            Advice("RR@10", "one right entry: how far down is it"),
            Advice("Success@1", "the first answer is often the only one read"),
            Advice("Success@3", "a list of three suggestions"),
        ),
        "questions without any answer need their own row: a system that always answers looks good "
        "here and is not",
        ("faq", "question-answering", "questions"),
    ),
    Task(
        "navigation",
        "known items and navigation",
        "a person wants one page that they know exists, and takes the first hit",
        (
            Advice("Success@1", "the page is first, or the person looks again"),
            Advice("RR@10", "1 at rank 1, 0.5 at rank 2: what a place costs"),
            Advice("Success@10", "below this the item counts as lost"),
        ),
        "judge one target for each query: with several relevant documents RR and Success count the "
        "first of them, and nDCG or recall would be the better question",
        ("navigational", "known-item"),
    ),
    Task(
        "retrieval",
        "the first stage, before a reranker",
        "a reranker reads the first hundred or thousand, in any order",
        (
            Advice("R@100", "what is not among the candidates cannot be ranked"),
            Advice("R@1000", "the same for a deep reranker"),
            Advice("Ceiling(nDCG@10, depth=100)", "what a perfect reranker of 100 candidates would "
                   "reach: no tuning of the second stage goes beyond it"),
            Advice("Judged@100", "unjudged candidates count as not relevant: know how many"),
        ),
        "judgments pooled from other systems punish a new kind of retrieval: look at the bounds of "
        "unjudged documents before you say that recall fell; the order within the candidates does "
        "not matter here",
        ("retrieval-stage", "first-stage", "candidates", "recall"),
    ),
    Task(
        "documents",
        "document search in a company or on a site",
        "a reader scans the first page and opens two or three documents",
        (
            Advice("nDCG@10", "graded documents on the page that is read"),
            Advice("P@5", "what the first glance meets"),
            Advice("RR@10", "how soon the first useful document comes"),
            Advice("R@100", "whether the rest is there for those who go on"),
        ),
        "permissions and age decide as much as words: slice by relevant.age and by source; "
        "duplicates and versions of one document are to be folded (--collapse)",
        ("document", "enterprise", "intranet", "site", "web"),
    ),
    Task(
        "hybrid",
        "keyword and vector search, fused",
        "readers as of document search; you want to know what each part adds",
        (
            Advice("nDCG@10", "the fused list, as it is read"),
            Advice("R@100", "whether the parts find different documents: fusing cannot find more "
                   "than they do together"),
            Advice("Ceiling(nDCG@10, depth=100)", "of each part: what it leaves to the fusion"),
            Advice("Judged@10", "judgments pooled from keyword search leave the other part's finds "
                   "unjudged"),
        ),
        "evaluate each part and the fusion in one command, and slice by query_form: vectors gain "
        "on questions, keywords on names. Ranks fused by reciprocals tie often, and ties decide: "
        "in a TREC run with 99.97 % ties the order of ids alone moved MAP from .058 to .074",
        ("fusion", "vector", "semantic"),
    ),
    Task(
        "support",
        "help centres and support tickets",
        "a customer, or an agent with a customer waiting, opens one of the first three articles",
        (
            Advice("Success@3", "whether the case can be solved from what is shown"),
            Advice("RR@10", "each article opened in vain costs a minute"),
            Advice("nDCG@5", "where articles solve the case partly"),
        ),
        "many questions have no article: mark them no_answer, and look at the share that stays "
        "silent; weigh queries by how often they are asked",
        ("helpdesk", "help", "tickets"),
    ),
    Task(
        "ecommerce",
        "product search",
        "a shopper compares several items of one or two screens",
        (
            Advice("nDCG(gain=exp)@10", "a perfect match is worth far more than a near one: "
                   "grade 3 counts 2³ − 1 = 7, grade 1 counts 1"),
            Advice("P(rel=2)@5", "bad items on the first screen cost trust"),
            Advice("ERR(max=3)@10", "a shopper who has found the right item looks no further"),
            Advice("R@100", "the candidates that ranking by price, stock or margin works on"),
        ),
        "head and tail queries behave differently: weigh queries by traffic and slice by "
        "frequency_band",
        ("product", "products", "shop", "retail", "e-commerce"),
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
        "exact names and questions in words are two populations: always look at them apart (--by "
        "query_form, or a class of your own)",
        ("api",),
    ),
    Task(
        "medical",
        "clinical and biomedical search",
        "a clinician needs good evidence at once; a reviewer must miss none",
        (
            Advice("nDCG@10", "at the bedside: the best evidence first"),
            Advice("P@10", "what is read in the time there is"),
            Advice("R@1000", "for a systematic review: what is missed biases it"),
            Advice("Bpref", "large collections are judged in part: it leaves unjudged documents "
                   "out"),
            Advice("Judged@10", "how much of what is shown was judged at all"),
        ),
        "relevant is not correct: grade evidence and topic apart. Report by the age of documents "
        "(--by relevant.age), as guidance is replaced",
        ("clinical", "biomedical", "health"),
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
        ("patent", "patents", "ediscovery", "systematic-review"),
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
        ("benchmark", "paper", "papers", "trec"),
    ),
)  # fmt: skip
