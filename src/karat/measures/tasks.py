"""Recommended measures for each task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """One measure recommended for a task."""

    measure: str  # its name, ready to type
    why: str  # the reason, one sentence


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of search, and how to measure it."""

    name: str  # as typed after `--for`
    title: str  # what it is
    users: str  # what users do with a ranking
    advice: tuple[Advice, ...]  # measures, most important first
    beware: str  # pitfalls
    also: tuple[str, ...] = ()  # other names
    policy: str = ""  # an example policy for `karat gate`, as TOML; may be empty


_RAG = """\
[[rule]]
measure = "R@10"   # set 10 to the number of passages in your prompt
min = 0.85

# With a baseline: recall must not drop.
# [[rule]]
# measure = "R@10"
# max_drop = 0.02
"""

TASKS = (
    Task(
        "one-number",
        "one number for a ranking",
        "someone asks how good the search is and wants one number",
        (
            Advice("nDCG@10", "it uses grades and ranks, is 0 to 1 for every query regardless of "
                   "the number of relevant documents, covers the ranks that users view, and "
                   "trec_eval, BEIR, ranx and ir_measures agree on it (linear gain)"),
        ),
        "one number hides regressions: publish n, the interval and Judged@10 with it, and look at "
        "slices (--by). RR uses only the first relevant document, P@10 ignores ranks and grades, "
        "AP ignores grades",
        ("one", "single", "summary"),
    ),
    Task(
        "rag",
        "retrieval for generated answers",
        "a language model reads the first k passages, all of them",
        (
            Advice("R@10", "a passage that is not in the top k cannot be in the answer: set k to "
                   "the number of passages in your prompt"),
            Advice("Success@10", "the share of questions with any usable passage"),
            Advice("nDCG@10", "uses grades, and models still read early passages better"),
            Advice("P@5", "noise costs tokens and misleads the model"),
            Advice("Ceiling(nDCG@10, depth=100)", "what a perfect reranker could still gain: "
                   "shows whether to work on retrieval or reranking"),
        ),
        "rank alone matters little once the passage is in the prompt: do not tune on RR; fold "
        "chunks into documents (--collapse parent_id) before you compare chunk sizes; if a "
        "question has more than 10 relevant passages, R@10 cannot reach 1, so use Rcap@10",
        ("generation", "retrieval-augmented-generation"),
        _RAG,
    ),
    Task(
        "qa",
        "questions with one known answer",
        "a person reads the first answer, rarely the third",
        (
            Advice("RR@10", "how far down the one right entry is"),
            Advice("Success@1", "the first answer is often the only one read"),
            Advice("Success@3", "a list of three suggestions"),
        ),
        "report questions without an answer separately: a system that always answers looks "
        "better here than it is",
        ("faq", "question-answering", "questions"),
    ),
    Task(
        "navigation",
        "known items and navigation",
        "a person wants one page that they know exists, and opens the first hit",
        (
            Advice("Success@1", "the page is first, or the person searches again"),
            Advice("RR@10", "1 at rank 1, 0.5 at rank 2: the cost of each rank"),
            Advice("Success@10", "an item below rank 10 counts as not found"),
        ),
        "judge one target for each query: with several relevant documents RR and Success count "
        "only the first, and nDCG or recall is the better choice",
        ("navigational", "known-item"),
    ),
    Task(
        "retrieval",
        "the first stage, before a reranker",
        "a reranker reads the first hundred or thousand, in any order",
        (
            Advice("R@100", "a document that is not a candidate cannot be ranked"),
            Advice("R@1000", "the same for a deep reranker"),
            Advice("Ceiling(nDCG@10, depth=100)", "what a perfect reranker of 100 candidates would "
                   "reach: the upper limit for the second stage"),
            Advice("Judged@100", "unjudged candidates count as not relevant: check how many"),
        ),
        "judgments pooled from other systems penalise a new kind of retrieval: check the bounds of "
        "unjudged documents before you conclude that recall fell; the order of the candidates does "
        "not matter here",
        ("retrieval-stage", "first-stage", "candidates", "recall"),
    ),
    Task(
        "documents",
        "document search in a company or on a site",
        "a reader scans the first page and opens two or three documents",
        (
            Advice("nDCG@10", "graded documents on the first page"),
            Advice("P@5", "what readers see first"),
            Advice("RR@10", "how far down the first useful document is"),
            Advice("R@100", "whether the rest is there for those who read on"),
        ),
        "permissions and age matter as much as words: slice by relevant.age and by source; "
        "fold duplicates and versions of one document (--collapse)",
        ("document", "enterprise", "intranet", "site", "web"),
    ),
    Task(
        "hybrid",
        "keyword and vector search, fused",
        "users read as in document search; you want to know what each part adds",
        (
            Advice("nDCG@10", "the fused list that users read"),
            Advice("R@100", "whether the parts find different documents: a fusion cannot find more "
                   "than they do together"),
            Advice("Ceiling(nDCG@10, depth=100)", "of each part: the best possible ranking of "
                   "its candidates"),
            Advice("Judged@10", "judgments pooled from keyword search leave documents of vector "
                   "search unjudged"),
        ),
        "evaluate each part and the fusion in one command, and slice by query_form: vectors gain "
        "on questions, keywords on names. Reciprocal rank fusion makes many ties, and ties matter: "
        "in a TREC run with 99.97 % ties the order of ids alone moved MAP from .058 to .074",
        ("fusion", "vector", "semantic"),
    ),
    Task(
        "support",
        "help centres and support tickets",
        "a customer, or an agent with a customer waiting, opens one of the first three articles",
        (
            Advice("Success@3", "whether the articles shown can solve the case"),
            Advice("RR@10", "each wrong article costs a minute"),
            Advice("nDCG@5", "for articles that solve the case partly"),
        ),
        "many questions have no article: mark them no_answer, and check the share without "
        "results; weight queries by how often they are asked",
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
            Advice("ERR(max=3)@10", "a shopper who has found the right item stops looking"),
            Advice("R@100", "the candidates for ranking by price, stock or margin"),
        ),
        "head and tail queries behave differently: weight queries by traffic and slice by "
        "frequency_band",
        ("product", "products", "shop", "retail", "e-commerce"),
    ),
    Task(
        "code",
        "code and API search",
        "a programmer wants one right symbol and looks at the first screen",
        (
            Advice("RR@10", "there is usually one right answer, and its rank is the cost"),
            Advice("Success@5", "whether the first screen is enough"),
            Advice("nDCG@10", "if related symbols (overloads, wrappers) have partial grades"),
        ),
        "exact names and natural-language questions are two populations: always report them "
        "separately (--by query_form, or an attribute of your own)",
        ("api",),
    ),
    Task(
        "medical",
        "clinical and biomedical search",
        "a clinician needs good evidence at once; a reviewer must miss none",
        (
            Advice("nDCG@10", "at the bedside: the best evidence first"),
            Advice("P@10", "what there is time to read"),
            Advice("R@1000", "for a systematic review: missed documents bias it"),
            Advice("Bpref", "large collections are partly judged: it ignores unjudged documents"),
            Advice("Judged@10", "the share of documents shown that were judged"),
        ),
        "relevant is not the same as correct: grade evidence and topic separately. Report by the "
        "age of documents (--by relevant.age), as guidance changes",
        ("clinical", "biomedical", "health"),
    ),
    Task(
        "legal",
        "legal, patent and systematic review search",
        "an expert reads on until nothing is missed",
        (
            Advice("R@1000", "a missed document may decide the case"),
            Advice("Rprec", "precision at the depth where everything could have been found"),
            Advice("AP", "order matters over the whole list"),
            Advice("Judged@100", "unjudged documents count as not relevant: check how many"),
        ),
        "recall covers judged documents only; relevant documents that no system retrieved are "
        "not counted",
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
            Advice("RBPresid(p=0.8)", "how much RBP(p=0.8) depends on unjudged documents"),
            Advice("R@1000", "first-stage retrieval"),
        ),
        "name the tool and its version: --compat trec_eval-9 prints what papers report; state how "
        "ties were broken and how many results were judged",
        ("benchmark", "paper", "papers", "trec"),
    ),
)  # fmt: skip
