"""GoldenSet: queries, their attributes and judged documents, built in Python.

``karat.golden.query`` defines and validates a query; ``karat.formats.own.golden`` the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, overload

import polars as pl

from karat.errors import InputError, UsageError, nearest
from karat.formats.own import golden
from karat.formats.tables import writing
from karat.formats.tables.query_log import read_query_log
from karat.golden.clicks import LoggedQuery, clicks_of
from karat.golden.query import (
    PERSON,
    GoldenQuery,
    ImportedExchange,
    Where,
    golden_query,
    graded,
    identifier,
    judgment_frame,
    number_of,
    query_frame,
    short,
    text_of,
    without_relevant,
)
from karat.golden.splitting import PART, SALT, SHARE, Split, in_part, split
from karat.golden.traffic import folded
from karat.tables import Qrels, Queries
from karat.tables.incoming import to_polars
from karat.tables.schema import Scale, read_scale

CLICKS = "clicks"  # the source of grades from a query log
_FORMS = ("karat", "list")
DWELL_S = 30.0  # dwell time, in seconds, from which a click counts
CLICKED, PASSED_OVER = 2.0, 0.0  # the grade of a clicked document, and of one shown but not clicked


class Logged(NamedTuple):
    """What one search of a log added."""

    query_id: str  # the query it was added to
    added: list[str]  # documents that had no grade before
    raised: list[str]  # documents that an earlier log only showed, and that were clicked now
    kept: list[str]  # documents that keep a person's grade


@dataclass(frozen=True)
class AddedLogs:
    rows: int  # number of rows of the log, including those left out
    # Ids of the queries that the log adds to, each once, in the order of the log
    queries: list[str]
    new: list[str]  # ids of those that were not in the golden set
    added: int  # number of pairs of query and document that had no grade before
    # Number of pairs that an earlier log only showed, and whose grade is now that of a click
    raised: int
    kept: int  # number of pairs that keep a person's grade
    clicks: int
    short_clicks: int  # number of clicks that do not: the user returned within `dwell_s` seconds
    unknown_dwell: int  # number of the `clicks` for which the log has no dwell
    left_out: dict[str, int]  # number of rows left out, at least 1, by reason
    notes: list[str]  # notes on what is missing from the log


class GoldenSet:
    """Queries with their judged documents, to measure a search by.

    Args:
        name: Name used in messages.
        scale: Lowest and highest possible grade, such as (0, 3); if None, from 0 to the largest
            grade.

    Raises:
        UsageError: an empty scale, or a name that is not text.
    """

    def __init__(
        self, name: str = "golden set", scale: str | Sequence[float] | None = None
    ) -> None:
        self._gathered = ImportedExchange()
        self._file: Path | None = None
        self.name = name
        self.scale = scale

    @property
    def name(self) -> str:
        """Name used in messages."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        try:
            self._name = text_of(name, "name", Where("golden set"), None)
        except InputError as error:
            says = f"{error.what} of a golden set"
            raise UsageError(says, fix='GoldenSet("help pages")') from None

    @property
    def scale(self) -> Scale | None:
        """Lowest and highest possible grade, or None. A new scale must include every grade."""
        return self._scale

    @scale.setter
    def scale(self, scale: str | Sequence[float] | None) -> None:
        new_scale = None if scale is None else read_scale(scale)
        for query in self:
            golden_query(
                Where(self.name),
                query.query_id,
                query.text,
                query.grades if query.judged else None,
                no_answer=query.no_answer,
                scale=new_scale,
                attributes={},
            )
        self._scale = new_scale

    def add(
        self,
        query: str,
        judgments: Mapping[str, float] | Iterable[str] | None = None,
        *,
        query_id: str | int | None = None,
        no_answer: bool = False,
        source: str = PERSON,
        **attributes: Any,
    ) -> str:
        """Add a query.

        Args:
            query: The text of the query.
            judgments: ``{document: grade}``, or the relevant documents, which get grade 1.
                Grade 0 means judged and not relevant. None if the query is not judged yet; empty
                if it is judged and no document is relevant.
            query_id: Its id; q1, q2, … if None.
            no_answer: The query has no right answer: a good system returns nothing.
            source: Who or what gave the grades.
            **attributes: Category, difficulty, need, weight, and any others to slice by: text,
                numbers, True and False. None is left out.

        Returns:
            The id of the query.

        Raises:
            InputError: a query without ``query_id`` has the text of another, an id is taken, a
                grade is not finite or off the scale, or a no-answer query has a document of
                grade 1 or higher.
        """
        where = Where(self.name)
        new_id = self._gathered.fresh() if query_id is None else query_id
        new = golden_query(
            where,
            new_id,
            query,
            judgments,
            no_answer=no_answer,
            source=source,
            scale=self.scale,
            attributes=attributes,
        )
        self._gathered.refuse(new.query_id, new.text, named=query_id is not None, where=where)
        self._gathered.put(new)
        return new.query_id

    def add_manual(
        self,
        query: str,
        relevance: Mapping[str, float] | Iterable[str] | None,
        category: str | None = None,
        difficulty: str | float | None = None,
        **settings: Any,
    ) -> str:
        """Add a query that a person judged: ``add``, under the name that tutorials use.

        Args:
            query: The text of the query.
            relevance: ``{document: grade}``; as the ``judgments`` of ``add``.
            category: What kind of query it is.
            difficulty: How hard it is.
            **settings: Further arguments of ``add``.

        Returns:
            The id of the query.

        Raises:
            InputError: as for ``add``.
        """
        return self.add(query, relevance, category=category, difficulty=difficulty, **settings)

    @overload
    def add_from_query_log(self, query: Any, *, dwell_s: float | None = None) -> AddedLogs: ...

    @overload
    def add_from_query_log(
        self,
        query: str,
        clicked_docs: Iterable[str] | Mapping[str, float | None],
        shown_docs: Iterable[str],
        *,
        dwell_s: float | None = None,
        **settings: Any,
    ) -> Logged: ...

    def add_from_query_log(
        self,
        query: Any,
        clicked_docs: Iterable[str] | Mapping[str, float | None] | None = None,
        shown_docs: Iterable[str] | None = None,
        *,
        dwell_s: float | None = None,
        **settings: Any,
    ) -> Logged | AddedLogs:
        """Add one search of a log, or, given the log alone, all of it.

        Args:
            query: The text of the query; or a whole log, as ``add_from_logs`` takes it.
            clicked_docs: Documents clicked, which get grade 2; with ``dwell_s`` the dwell time on
                each, ``{id: seconds}``, None if unknown.
            shown_docs: Documents shown; those that were not clicked get grade 0.
            dwell_s: Dwell time from which a click counts, in seconds; None means 30 for a whole
                log, and for one search that every click counts.
            **settings: Further arguments of ``add_from_log``.

        Returns:
            What ``add_from_log`` returns for one search, and ``add_from_logs`` for a log.

        Raises:
            UsageError: ``dwell_s`` without dwell times, or only one of the two lists.
            InputError: as ``add_from_log`` and ``add_from_logs``.
        """
        if clicked_docs is None and shown_docs is None and not settings:
            return self.add_from_logs(query, DWELL_S if dwell_s is None else dwell_s)
        if clicked_docs is None or shown_docs is None:
            raise UsageError(
                "one search needs clicked_docs and shown_docs",
                fix='golden.add_from_query_log("join lists", ["a"], ["a", "b"])',
            )
        clicked = clicked_docs
        if dwell_s is not None:
            _check_dwell(dwell_s)
            if not isinstance(clicked_docs, Mapping):
                raise UsageError(
                    "dwell_s needs the dwell time on each document",
                    fix='clicked_docs={"a": 42.0}, or a whole log: add_from_query_log(log, '
                    f"dwell_s={dwell_s:g})",
                )
            clicked = [d for d, long in clicked_docs.items() if long is None or long >= dwell_s]
        return self.add_from_log(query, clicked, shown_docs, **settings)

    def add_from_logs(self, log: Any, dwell_s: float = DWELL_S) -> AddedLogs:
        """Add a whole log of searches and clicks, as ``add_from_log`` adds one search.

        A click counts only with a dwell time of ``dwell_s`` seconds or longer: after a shorter one
        the document counts as shown and not clicked. A click of unknown dwell time counts.
        Searches that differ only in case or white space are one query. Searches of bots, and those
        that contain an e-mail address, a phone, card or account number, are left out and counted.

        Args:
            log: A path (CSV, TSV, JSONL, Parquet), a data frame or a list of dictionaries. Either
                a row for each document shown: ``query``, ``doc_id``, ``clicked`` (true, false),
                ``dwell_s`` (seconds, empty if unknown). Or a row for each search: ``query``,
                ``clicked_docs`` (ids, or ``{id: seconds}``; with ids, ``dwell_s`` may be a list of
                seconds in their order) and ``shown_docs``. A column
                ``is_bot`` or ``user_agent`` shows which searches are of bots.
            dwell_s: Seconds; 0 counts every click.

        Returns:
            What was added, and what was left out and why.

        Raises:
            InputError: the log cannot be read or lacks a column; nothing is added then.
            UsageError: ``dwell_s`` is negative or not a number.
        """
        _check_dwell(dwell_s)
        rows, source, notes = _log_rows(log)
        clicks = clicks_of(rows, dwell_s=float(dwell_s), source=source)
        before, left_out = self._gathered, dict(clicks.left_out)
        ids_of: dict[str, list[str]] = {}
        for query_id, key in zip(before.queries, folded(q.text for q in self), strict=True):
            ids_of.setdefault(key, []).append(query_id)
        logged: list[Logged] = []
        self._gathered = ImportedExchange(before.queries.values())
        try:
            for each in clicks.queries:
                ids = ids_of.get(each.key, [])
                if why := self._cannot(ids, each):
                    left_out[why] = left_out.get(why, 0) + each.rows
                    continue
                text = before.queries[ids[0]].text if ids else each.text
                known = {"query_id": ids[0]} if ids else {}
                logged.append(self.add_from_log(text, each.clicked, each.shown, **known))
        except BaseException:
            self._gathered = before
            raise
        return AddedLogs(
            rows=clicks.rows,
            queries=[each.query_id for each in logged],
            new=[each.query_id for each in logged if each.query_id not in before.queries],
            added=sum(len(each.added) for each in logged),
            raised=sum(len(each.raised) for each in logged),
            kept=sum(len(each.kept) for each in logged),
            clicks=clicks.clicks,
            short_clicks=clicks.short_clicks,
            unknown_dwell=clicks.unknown_dwell,
            left_out=left_out,
            notes=[*notes, *clicks.notes],
        )

    def add_from_log(
        self,
        query: str,
        clicked: Iterable[str],
        shown: Iterable[str],
        *,
        query_id: str | int | None = None,
        **attributes: Any,
    ) -> Logged:
        """Add one search of a log: grade 2 for documents clicked, 0 for those only shown.

        Clicks are weaker evidence than a person's judgment, and favour top ranks. So these grades
        have the source ``clicks``, a new query gets the attribute ``origin="clicks"``, and a
        person's grade is never replaced. Searches of the same query are combined: a document that
        was clicked once counts as clicked.

        Grade 2 is meant for a scale such as 0 to 3. If relevant documents were given as a list,
        and so have grade 1, a click outranks them: give them explicit grades.

        Args:
            query: The text of the query.
            clicked: Documents clicked; each must have been shown.
            shown: Documents shown.
            query_id: Which query, if several have this text; or the id of a new one.
            **attributes: Attributes of a new query; an existing one keeps its own.

        Returns:
            What was added, raised, and kept as a person judged it.

        Raises:
            InputError: a click on a document not shown, nothing shown, a scale without the grades
                0 and 2, or a click for a query marked ``no_answer``.
            UsageError: ``no_answer`` or ``source``, which a log cannot set.
        """
        where = Where(self.name)
        for key, why in (
            ("no_answer", "a search without clicks may still have a right answer"),
            ("source", f"grades of a log have the source {CLICKS!r}"),
        ):
            if key in attributes:
                raise UsageError(f"add_from_log takes no {key}: {why}", fix="golden.add(…)")
        text = text_of(query, "query", where, None)
        clicks = {identifier(doc, "doc_id", where): CLICKED for doc in _listed(clicked, "clicked")}
        seen = [identifier(doc, "doc_id", where) for doc in _listed(shown, "shown")]
        if not seen and not clicks:
            raise where.wrong(
                f"no document was shown for the query {text!r}",
                fix="leave the search out",
            )
        unseen = next((doc for doc in clicks if doc not in set(seen)), None)
        if unseen is not None:
            raise where.wrong(
                f"document {unseen} was clicked and not shown, for the query {text!r}",
                doc_id=unseen,
                fix="shown must list all documents of the page, including those clicked",
            )
        grades = {doc: clicks.get(doc, PASSED_OVER) for doc in seen}
        existing = self._of_text(text, query_id)
        if existing is None:
            known = {"origin": CLICKS, **attributes}
            new = self.add(text, grades, query_id=query_id, source=CLICKS, **known)
            return Logged(new, list(grades), [], [])
        if clicks and self._gathered.queries[existing].no_answer:
            raise where.wrong(
                f"the query is marked no_answer, and document {next(iter(clicks))} was clicked",
                existing,
                fix="remove no_answer, or leave out the clicks",
            )
        old = self._gathered.queries[existing].judgments
        kept = [doc for doc in grades if doc in old and old[doc].source != CLICKS]
        added = [doc for doc in grades if doc not in old]
        raised = [
            doc for doc in grades if doc in old and doc not in kept and grades[doc] > old[doc].grade
        ]
        self._judge(existing, {doc: grades[doc] for doc in [*added, *raised]}, CLICKS)
        return Logged(existing, added, raised, kept)

    def judge(
        self,
        query_id: str | int,
        judgments: Mapping[str, float] | Iterable[str],
        *,
        source: str = PERSON,
    ) -> None:
        """Judge documents of a query; a new grade replaces the old one.

        Args:
            query_id: The query.
            judgments: ``{document: grade}``, or the relevant documents, which get grade 1.
            source: Who or what gave the grades.

        Raises:
            KeyError: unknown query.
            InputError: as for ``add``.
        """
        known_id = self[query_id].query_id
        grades = graded(judgments, Where(self.name), known_id, self.scale)
        self._judge(known_id, grades, source)

    def remove(self, query_id: str | int) -> None:
        """Remove a query.

        Raises:
            KeyError: unknown query.
        """
        self._gathered.drop(self[query_id].query_id)

    def split(self, share: float = SHARE, salt: str = SALT) -> Split:
        """Assign each query to a part, ``dev`` or ``held_out``, in the attribute ``part``.

        A query's part depends on the salt and its id only, so queries added later move no others.
        A query that has a part keeps it, whatever the share.

        Args:
            share: Share of queries in ``dev``, above 0 and below 1.
            salt: The same salt gives the same parts.

        Returns:
            The part of each query, and the size of each part.

        Raises:
            UsageError: the share is not between 0 and 1.
            InputError: there are no queries, or they use the attribute ``part`` otherwise.
        """
        before = {query.query_id: query.attributes.get(PART) for query in self}
        parts = split(before, share, salt, source=self.name)
        for query in self:
            self._gathered.put(in_part(query, parts))
        return parts

    @classmethod
    def load(cls, path: str | Path) -> GoldenSet:
        """Read a golden set: what ``save`` wrote, or a plain list.

        A plain list is a JSON array, or JSONL, of ``{"query": text, "relevant_docs": …}``, where
        ``relevant_docs`` are ids (grade 1) or ``{id: grade}``; other keys are attributes. Empty
        ``relevant_docs`` mean that no document is relevant; without the key the query is not
        judged yet. Without ids, queries are called q1, q2, … in order.

        Args:
            path: The file, plain or compressed; ``-`` for standard input.

        Raises:
            InputError: it cannot be read, or is damaged (with line or item, query, and fix).
            UsageError: not a path.
        """
        content = golden.read(_path(path, "load"))
        file = Path(path) if Path(path).is_file() else None
        return cls._of(content.queries, content.name or Path(path).name, content.scale, file)

    @classmethod
    def from_list(cls, items: Sequence[Mapping[str, Any]], name: str = "golden set") -> GoldenSet:
        """A golden set from a list of the form that ``load`` reads from a file.

        Raises:
            InputError: an invalid item, with its number from 1.
        """
        return cls._of(golden.listed(items, name), name, None)

    @classmethod
    def from_tables(
        cls, queries: Queries, qrels: Qrels, name: str = "golden set", *, unjudged: bool = True
    ) -> GoldenSet:
        """A golden set from queries and judgments (``karat.read_queries``, ``read_qrels``).

        Queries without judgments are not judged yet, and are in ``to_judge``. Of several grades for
        subtopics the highest is used, and attributes that are neither text nor numbers (dates, for
        example) become text. If a ``no_answer`` query has a document of grade 1 or higher, the
        largest grade becomes the top of the scale: documents below it are related, not answers.

        Args:
            queries: The queries.
            qrels: The judgments.
            name: Name used in messages.
            unjudged: Whether to include queries without judgments.

        Raises:
            InputError: the queries have no text, or a judged query is not among them.
        """
        if "text" not in queries.frame.columns:
            raise InputError("the queries have no text", file=queries.source)
        known = set(queries.frame["query_id"])
        missing = next((query for query in qrels.query_ids if query not in known), None)
        if missing is not None:
            raise InputError(
                "the query is judged, but is not among the queries",
                file=queries.source,
                query=missing,
                fix="give the queries that these judgments are for",
            )
        unanswered, grades = queries.no_answer(), qrels.to_dict()
        grades |= {query_id: {} for query_id in qrels.without}
        golden_queries = [
            golden_query(
                Where(queries.source),
                row.pop("query_id"),
                row.pop("text"),
                grades.get(query_id),
                no_answer=query_id in unanswered,
                scale=qrels.scale,
                attributes={
                    key: _scalar(value) for key, value in row.items() if key != "no_answer"
                },
            )
            for row in queries.frame.iter_rows(named=True)
            if (query_id := row["query_id"]) in grades or query_id in unanswered or unjudged
        ]
        scale = qrels.declared
        if scale is None and any(
            grade >= 1 for q in golden_queries if q.no_answer for grade in q.grades.values()
        ):
            scale = qrels.scale  # else these grades would count as answers
        file = None if qrels.file is None else Path(qrels.file)
        return cls._of(golden_queries, name, scale, file)

    def save(self, path: str | Path, form: str = "karat") -> list[str]:
        """Write it as JSON, atomically: to a temporary file that is then renamed.

        The same golden set gives the same bytes, with one query per line.

        Args:
            path: The file.
            form: ``karat``, which keeps everything; or ``list``, a JSON list of objects with
                ``query``, ``relevant_docs`` (``{id: grade}``), ``category`` and ``difficulty``, for
                other programs.

        Returns:
            What the form cannot hold, in sentences.

        Raises:
            InputError: the file cannot be written, or two queries have the same text, which
                identifies a query in a list.
            UsageError: not a path (``-`` is not one either), or an unknown form.
        """
        if form not in _FORMS:
            raise UsageError(f"unknown form {form!r}", nearest=nearest(str(form), _FORMS) or _FORMS)
        if str(_path(path, "save")) == "-":
            raise UsageError(
                "a golden set is saved to a file, not to standard output",
                fix='golden.save("golden.json")',
            )
        if form == "list":
            self._refuse_one_text()
            data, lost = golden.simple(self), list(self._lost_in_list())
        else:
            data = golden.to_bytes(golden.GoldenFile(list(self), self.name, self.scale))
            lost = []
        with writing.beside(Path(path)) as stream:
            stream.write(data)
        self._file = Path(path)
        return lost

    @property
    def qrels(self) -> Qrels:
        """The judgments, on the scale of the golden set."""
        qrels = Qrels(judgment_frame(self), self.name, self.scale, without_relevant(self))
        qrels.file = None if self._file is None else str(self._file)
        return qrels

    @property
    def to_judge(self) -> list[str]:
        """Ids of the queries that are not judged yet; no measure counts them."""
        return [query.query_id for query in self if not query.judged]

    @property
    def queries(self) -> Queries:
        """The queries: id, text, attributes, and ``no_answer`` if any query is marked so."""
        return Queries(query_frame(list(self), self.name), self.name)

    def __getitem__(self, query_id: str | int) -> GoldenQuery:
        try:
            return self._gathered.queries[_id(query_id)]
        except (KeyError, TypeError):
            near = nearest(str(query_id), self._gathered.queries, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise KeyError(f"{self.name} has no query {query_id!r}{meant}") from None

    def __contains__(self, query_id: object) -> bool:
        return isinstance(query_id, Hashable) and _id(query_id) in self._gathered.queries

    def __iter__(self) -> Iterator[GoldenQuery]:
        return iter(list(self._gathered.queries.values()))

    def __len__(self) -> int:
        return len(self._gathered.queries)

    def __repr__(self) -> str:
        judged = sum(len(query.judgments) for query in self)
        silent = sum(query.no_answer for query in self)
        waiting = len(self.to_judge)
        some = [f"{silent} without an answer"] * bool(silent) + [f"{waiting} to judge"] * bool(
            waiting
        )
        more = f" ({', '.join(some)})" if some else ""
        return f"<GoldenSet {self.name}: {len(self)} queries{more}, {judged} judgments>"

    @classmethod
    def _of(
        cls,
        queries: Iterable[GoldenQuery],
        name: str,
        scale: tuple[float, float] | None,
        file: Path | None = None,
    ) -> GoldenSet:
        golden_set = cls(name, scale)
        golden_set._gathered, golden_set._file = ImportedExchange(queries), file
        return golden_set

    def _refuse_one_text(self) -> None:
        for text, ids in self._gathered.ids_of.items():
            if len(ids) > 1:
                raise InputError(
                    f"queries {ids[0]} and {ids[1]} have the same text, {text!r}, which identifies "
                    "a query in a list",
                    file=self.name,
                    fix='form="karat"',
                )

    def _lost_in_list(self) -> Iterator[str]:
        """What a plain list cannot hold."""
        written = [query for query in self if query.judged]
        if any(query.query_id != f"q{at}" for at, query in enumerate(written, 1)):
            yield "the ids of queries: when read, they become q1, q2, …"
        if waiting := self.to_judge:
            yield f"queries that are not judged yet: {len(waiting):,}"
        if silent := sum(query.no_answer for query in self):
            yield f"the no_answer marks: {silent:,}"
        names = {name for query in self for name in query.attributes} - set(golden.SIMPLE)
        if names:
            yield f"attributes: {', '.join(sorted(names))}"
        if any(j.source != PERSON for query in self for j in query.judgments.values()):
            yield "the sources of grades"
        if self.scale is not None:
            yield f"the scale {self.scale[0]:g}-{self.scale[1]:g}"

    def _of_text(self, text: str, query_id: str | int | None) -> str | None:
        """Id of the query with this text; None if it is new."""
        ids = self._gathered.ids_of.get(text, [])
        if query_id is not None:
            return _id(query_id) if _id(query_id) in ids else None
        if len(ids) > 1:
            raise InputError(
                f"{len(ids)} queries have the text {text!r}: {', '.join(ids[:5])}",
                file=self.name,
                fix="choose one: query_id=…",
            )
        return ids[0] if ids else None

    def _cannot(self, ids: Sequence[str], searched: LoggedQuery) -> str | None:
        """Why a search of a log cannot be added; None if it can."""
        if len(ids) > 1:
            return "several queries of the golden set have this text"
        if ids and searched.clicked and self._gathered.queries[ids[0]].no_answer:
            return "clicks on a query marked no_answer"
        return None

    def _judge(self, query_id: str, grades: Mapping[str, float], source: str) -> None:
        old = self._gathered.queries[query_id]
        sources = {doc: judgment.source for doc, judgment in old.judgments.items()}
        checked = golden_query(
            Where(self.name),
            query_id,
            old.text,
            {**old.grades, **grades},
            no_answer=old.no_answer,
            sources=sources | dict.fromkeys(grades, source),
            scale=self.scale,
            attributes={},
        )
        self._gathered.put(replace(old, judgments=checked.judgments, judged=True))


def _id(value: Any) -> Any:
    """An id as stored: integers as decimal text."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    return str(int(value)) if is_integer else value


def _path(path: Any, verb: str) -> str | Path:
    if not isinstance(path, str | Path):
        kind = "None" if path is None else f"of type {type(path).__name__}"
        raise UsageError(f"the path is {kind}", fix=f'GoldenSet.{verb}("golden.json")')
    return path


def _log_rows(log: Any) -> tuple[pl.DataFrame, str, list[str]]:
    """The rows of a log, as ``clicks_of`` takes them, its name in messages, and notes."""
    notes: list[str] = []
    if isinstance(log, str | Path):
        return read_query_log(log, notes=notes), str(log), notes
    if not isinstance(log, list):
        return to_polars(log, "the log"), "the log", notes
    if not log or any(not isinstance(row, Mapping) for row in log):
        raise UsageError(
            "the log is an empty list" if not log else "a row of the log is not a dictionary",
            fix='[{"query": "wing", "clicked_docs": ["a"], "shown_docs": ["a", "b"]}]',
        )
    names = dict.fromkeys(str(name) for row in log for name in row)
    cells = {name: [_cell(row.get(name)) for row in log] for name in names}
    return pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String)), "the log", notes


def _cell(value: Any) -> str | None:
    """A value of a log as text: JSON for a list or an object."""
    if isinstance(value, list | tuple | set | dict):
        return json.dumps(sorted(value) if isinstance(value, set) else value, default=str)
    return None if value is None else str(value)


def _scalar(value: Any) -> Any:
    """A cell of a frame as an attribute; None for NaN."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _listed(documents: Iterable[str], what: str) -> list[Any]:
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        raise UsageError(
            f"{what} is a {type(documents).__name__}, not a list of documents",
            fix=f'{what}=["a", "b"]',
        )
    return list(documents)


def _check_dwell(dwell_s: Any) -> None:
    if isinstance(dwell_s, bool) or not 0 <= number_of(dwell_s) < math.inf:
        raise UsageError(f"dwell_s is {short(dwell_s)}, not a number of seconds from 0 up")
