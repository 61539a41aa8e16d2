"""What a simulation drew: the truth that metrics over its log have to find again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.online.simulate.behaviours import OK, PAGE, STATUSES, Behaviour
from karat.online.simulate.population import Visits
from karat.online.simulate.records import Made
from karat.online.simulate.wording import WORDINGS


@dataclass(frozen=True)
class Truth:
    """What users did and thought, without bots."""

    # One row for each request, keystrokes left out: `session`, `user_id`, `need`, `number`, `query`
    # (place on the shelf), `arm`, `wording`, `page`, `filtered`, `status`, `time_us`, `shown`
    # (results), `clicks`, `satisfied` (whether a click satisfied) and `answer_read`
    requests: pl.DataFrame
    # One row for each place of a page, of requests that were answered: `place` from 1, `shown` (how
    # often there was a result), `attraction` (mean chance of a click on what is examined, over
    # those), `expected` (mean chance of a click), `examined` and `clicked` (shares drawn); those
    # who read an answer instead are left out
    places: pl.DataFrame
    sessions: int
    tasks: int  # number of needs


def tell(made: Made, visits: Visits, behaviour: Behaviour) -> Truth:
    """The truth about what was drawn."""
    drawn = made.requests
    shown = drawn.found >= 0
    requests = pl.DataFrame(
        {
            "session": made.session,
            "user_id": made.people.user_id.gather(visits.user[made.session]),
            "need": drawn.need,
            "number": drawn.number,
            "query": made.needs.query[drawn.need],
            "arm": pl.Series(made.shelf.arms).gather(made.needs.arm[drawn.need].astype(np.int64)),
            "wording": pl.Series(WORDINGS).gather(drawn.wording),
            "page": drawn.page,
            "filtered": drawn.filtered,
            "status": pl.Series(STATUSES).gather(drawn.status.astype(np.int64)),
            "time_us": made.asked // 1000 * 1000,
            "shown": shown.sum(axis=1),
            "clicks": drawn.clicked.sum(axis=1),
            "satisfied": drawn.satisfied.any(axis=1),
            "answer_read": drawn.answer_read,
        }
    )
    counts = (drawn.status == OK) & ~drawn.answer_read
    there, gain = shown[counts], drawn.gain[counts]
    number = there.sum(axis=0)
    least = np.maximum(number, 1)
    places = pl.DataFrame(
        {
            "place": np.arange(1, PAGE + 1),
            "shown": number,
            "attraction": (behaviour.taste.attraction(gain) * there).sum(axis=0) / least,
            "expected": behaviour.chances(gain, there).sum(axis=0) / least,
            "examined": drawn.examined[counts].sum(axis=0) / least,
            "clicked": drawn.clicked[counts].sum(axis=0) / least,
        }
    )
    return Truth(requests, places, len(np.unique(made.session)), len(np.unique(drawn.need)))
