-- The reductions of karat online evaluate, written by hand for DuckDB: what benchmarks/online_events.py
-- runs beside karat. Thirteen metrics over all searches, by day and by arm. :files is replaced.

CREATE TEMP TABLE activity AS
WITH events AS (
    SELECT user_bucket, user_key, time_us, tie, kind, query_id,
        CASE WHEN trim(query_key) <> '' THEN query_key END AS query_key, doc_id, position, total_hits,
        returned, filtered, status, latency_us, value, arm, local_day
    FROM read_parquet(:files)
    WHERE kind <> 'impression' AND NOT coalesce(bot, false)
), marked AS (
    SELECT *, lag(time_us) OVER w AS previous, count(*) FILTER (kind = 'search') OVER w AS request
    FROM events WINDOW w AS (PARTITION BY user_key ORDER BY time_us, tie)
), fresh AS (
    SELECT *, coalesce(time_us - previous > 1800000000, true) AS fresh FROM marked
), started AS (
    SELECT *, max(CASE WHEN fresh THEN time_us END) OVER w AS start
    FROM fresh WINDOW w AS (PARTITION BY user_key ORDER BY time_us, tie)
)
SELECT * EXCLUDE (previous, fresh, start), count(*) FILTER (
        fresh OR (time_us - start) // 86400000000 <> (previous - start) // 86400000000
    ) OVER (PARTITION BY user_key ORDER BY time_us, tie) AS session
FROM started;

CREATE TEMP TABLE requests AS
WITH asked AS (
    SELECT *, coalesce(lag(session) OVER w = session AND time_us - lag(time_us) OVER w <= 3000000, false) AS soon,
        soon AND coalesce(lag(query_key) OVER w <> query_key
            AND (starts_with(query_key, lag(query_key) OVER w) OR starts_with(lag(query_key) OVER w, query_key)),
            false) AS longer,
        soon AND coalesce(lag(query_key) OVER w = query_key, false) AS again
    FROM activity WHERE kind = 'search' WINDOW w AS (PARTITION BY user_key ORDER BY time_us, tie)
), alike AS (
    SELECT *, count(*) FILTER (NOT again) OVER w AS run
    FROM asked WINDOW w AS (PARTITION BY user_key ORDER BY time_us, tie)
), typing AS (
    SELECT * EXCLUDE (soon, longer, again, run), bool_or(longer) OVER (PARTITION BY user_key, run) AS typing FROM alike
), chained AS (
    SELECT *, count(*) FILTER (NOT typing) OVER w AS chain, NOT coalesce(lead(typing) OVER w, false) AS typed
    FROM typing WINDOW w AS (PARTITION BY user_key ORDER BY time_us, tie)
), ends AS (
    SELECT user_key, chain, time_us, tie,
        coalesce(lag(session) OVER w = session AND lag(query_key) OVER w = query_key, false) AS same
    FROM chained WHERE typed WINDOW w AS (PARTITION BY user_key ORDER BY time_us, tie)
), numbered AS (
    SELECT user_key, chain, same,
        count(*) FILTER (NOT same) OVER (PARTITION BY user_key ORDER BY time_us, tie) AS intent
    FROM ends
)
SELECT chained.*, intent, request = coalesce(
        min(request) FILTER (typed AND coalesce(status, 'ok') NOT IN ('error', 'timeout')) OVER w,
        min(request) FILTER (typed) OVER w) AS counts
FROM chained JOIN numbered USING (user_key, chain) WINDOW w AS (PARTITION BY user_key, intent);

CREATE TEMP TABLE intents AS
WITH whole AS (
    SELECT user_key, intent, min(time_us) AS began, max(time_us) AS last,
        coalesce(bool_or(heard AND coalesce(total_hits, returned) > 0), false) AS had,
        coalesce(bool_or(heard AND coalesce(total_hits, returned) = 0 AND NOT coalesce(filtered, false)), false) AS nothing,
        max(CASE WHEN typed THEN coalesce(returned, CASE WHEN total_hits = 0 THEN 0 END) END) AS most,
        bool_or(heard AND returned IS NULL AND coalesce(total_hits, 1) <> 0) AS untold
    FROM (SELECT *, typed AND coalesce(status, 'ok') NOT IN ('error', 'timeout') AS heard FROM requests)
    GROUP BY ALL
), bounds AS (
    SELECT user_key, session, max(time_us) AS ended FROM activity GROUP BY ALL
), counted AS (
    SELECT r.*, began, last, had, nothing, most, untold, ended FROM requests r JOIN whole USING (user_key, intent)
    JOIN bounds USING (user_key, session) WHERE counts
)
SELECT *, CASE WHEN lead(session) OVER w = session THEN lead(query_key) OVER w END AS next_key,
    CASE WHEN lead(session) OVER w = session THEN lead(began) OVER w END AS next_us
FROM counted WINDOW w AS (PARTITION BY user_key ORDER BY intent);

CREATE TEMP TABLE names AS
SELECT user_key, query_id, min(intent) AS intent, min(time_us) AS named_us FROM requests WHERE query_id IS NOT NULL GROUP BY ALL;

CREATE TEMP TABLE done AS
WITH acts AS (SELECT * FROM activity WHERE kind NOT IN ('heartbeat', 'other') AND NOT (kind = 'hide' AND doc_id IS NULL)
), ahead AS (
    SELECT *, CASE WHEN lead(session) OVER w = session THEN lead(time_us) OVER w END AS next_us
    FROM acts WINDOW w AS (PARTITION BY user_key ORDER BY time_us, tie)
)
SELECT a.*, n.intent AS named, coalesce(n.intent, r.intent) AS intent
FROM ahead a LEFT JOIN names n ON n.user_key = a.user_key AND n.query_id = a.query_id
    AND a.time_us - n.named_us BETWEEN -60000000 AND 86400000000
LEFT JOIN requests r ON r.user_key = a.user_key AND r.request = a.request AND r.session = a.session
WHERE a.kind IN ('click', 'hide', 'cart', 'purchase');

CREATE TEMP TABLE answers AS
WITH line AS (
    SELECT *, min(CASE WHEN kind <> 'answer' THEN time_us END) OVER (PARTITION BY user_key, session
        ORDER BY time_us, tie ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS gone
    FROM activity WHERE kind IN ('search', 'click', 'hide', 'cart', 'purchase', 'answer')
), bounds AS (
    SELECT user_key, session, max(time_us) AS ended FROM activity GROUP BY ALL
), shown AS (
    SELECT coalesce(n.intent, r.intent) AS intent, a.*, coalesce(gone, ended) - a.time_us >= 5000000 AS long
    FROM line a JOIN bounds USING (user_key, session)
    LEFT JOIN names n ON n.user_key = a.user_key AND n.query_id = a.query_id
        AND a.time_us - n.named_us BETWEEN -60000000 AND 86400000000
    LEFT JOIN requests r ON r.user_key = a.user_key AND r.request = a.request AND r.session = a.session
    WHERE a.kind = 'answer'
)
SELECT user_key, intent, max(CASE WHEN long OR gone IS NULL THEN 1 ELSE 0 END) AS answered
FROM shown WHERE intent IS NOT NULL GROUP BY ALL;

CREATE TEMP TABLE clicks AS
WITH beats AS (
    SELECT user_key, session, max(time_us) AS beat FROM activity WHERE kind = 'heartbeat' GROUP BY ALL
), hidden AS (
    SELECT *, CASE WHEN doc_id IS NOT NULL AND lead(kind) OVER w = 'hide' AND lead(session) OVER w = session
        THEN lead(time_us) OVER w END AS hidden_us
    FROM done WHERE kind IN ('click', 'hide') WINDOW w AS (PARTITION BY user_key, doc_id ORDER BY time_us, tie)
), first AS (
    SELECT * REPLACE (min(position) OVER w AS position) FROM hidden WHERE kind = 'click' AND intent IS NOT NULL
    WINDOW w AS (PARTITION BY user_key, intent, coalesce(doc_id, chr(0) || position))
    QUALIFY row_number() OVER (
        PARTITION BY user_key, intent, coalesce(doc_id, chr(0) || position) ORDER BY time_us, tie) = 1
), taken AS (
    SELECT user_key, session, doc_id, max(time_us) AS taken FROM activity
    WHERE kind IN ('cart', 'purchase') GROUP BY ALL
), timed AS (
    SELECT *, coalesce(hidden_us, next_us) - time_us AS until,
        coalesce(until, CASE WHEN beat > time_us THEN beat - time_us END, 0) AS dwell
    FROM first LEFT JOIN beats USING (user_key, session) LEFT JOIN taken USING (user_key, session, doc_id)
)
SELECT user_bucket, user_key, intent, time_us, position, least(dwell, 1800000000) AS dwell_us,
    until IS NULL OR dwell > 1800000000 AS censored,
    dwell_us >= 30000000 OR coalesce(taken >= time_us, false) AS long
FROM timed;

-- Classes of the distinct pairs of texts.
CREATE TEMP TABLE classes AS
WITH pairs AS (
    SELECT DISTINCT query_key, next_key FROM intents
    WHERE next_key IS NOT NULL AND next_us - last <= 300000000 AND next_key <> query_key
), words AS (
    SELECT *, list_distinct(string_split(query_key, ' ')) AS one, list_distinct(string_split(next_key, ' ')) AS two,
        len(list_intersect(one, two)) AS shared
    FROM pairs
)
SELECT query_key, next_key FROM words
WHERE shared * 2 >= len(one) + len(two) - shared OR shared = len(one) OR shared = len(two)
    OR 1 - levenshtein(query_key, next_key) / greatest(length(query_key), length(next_key)) >= 0.6;

CREATE TEMP TABLE facts AS
WITH clicked AS (
    SELECT user_key, intent, count(*) AS clicks, min(position) AS first_rank, min(time_us) AS first_us,
        max(CASE WHEN long THEN 1 ELSE 0 END) AS sat_low, max(CASE WHEN long OR censored THEN 1 ELSE 0 END) AS sat_high
    FROM clicks GROUP BY ALL
), seen AS (
    SELECT user_key, intent, count(*) AS logged FROM (
        SELECT DISTINCT user_key, n.intent, doc_id FROM read_parquet(:files) JOIN names n USING (user_key, query_id)
        WHERE time_us - named_us BETWEEN -60000000 AND 86400000000 AND kind = 'impression' AND NOT coalesce(bot, false) AND doc_id IS NOT NULL) GROUP BY ALL
), touches AS (
    SELECT user_key, doc_id, time_us, tie, intent FROM done WHERE kind = 'click' AND intent IS NOT NULL
    UNION ALL
    SELECT user_key, doc_id, time_us, tie, n.intent FROM read_parquet(:files) JOIN names n USING (user_key, query_id)
    WHERE time_us - named_us BETWEEN -60000000 AND 86400000000 AND kind = 'impression' AND NOT coalesce(bot, false)
), bought AS (
    SELECT user_key, kind, session, time_us, value, named AS intent, NULL::BIGINT AS since
    FROM done WHERE kind IN ('cart', 'purchase') AND named IS NOT NULL
    UNION ALL
    SELECT d.user_key, d.kind, d.session, d.time_us, d.value, t.intent, t.time_us
    FROM (SELECT * FROM done WHERE kind IN ('cart', 'purchase') AND named IS NULL) d
    ASOF JOIN touches t ON d.user_key = t.user_key AND d.doc_id = t.doc_id AND d.time_us >= t.time_us
), carts AS (
    SELECT DISTINCT b.user_key, b.intent FROM bought b JOIN intents i ON b.user_key = i.user_key AND b.intent = i.intent
    WHERE b.kind = 'cart' AND b.session = i.session AND b.time_us - i.began >= -60000000
        AND b.time_us - coalesce(since, i.time_us) <= 1800000000
), purchases AS (
    SELECT b.user_key, b.intent, sum(coalesce(b.value, 0)) AS revenue
    FROM bought b JOIN intents i ON b.user_key = i.user_key AND b.intent = i.intent
    WHERE b.kind = 'purchase' AND b.time_us - i.began >= -60000000 AND b.time_us - i.time_us <= 86400000000 GROUP BY ALL
), joined AS (
    SELECT i.*, coalesce(c.clicks, 0) AS clicks, first_rank, first_us, coalesce(sat_low, 0) AS sat_low,
        coalesce(sat_high, 0) AS sat_high, (k.intent IS NOT NULL)::INT AS cart, (p.intent IS NOT NULL)::INT AS bought,
        coalesce(answered, 0) AS answered,
        -- The most that any of its requests showed; none only if that is known of all.
        coalesce(logged, CASE WHEN most > 0 OR NOT untold THEN most END) AS known_items,
        CASE WHEN known_items IS NOT NULL THEN greatest(known_items, coalesce(c.clicks, 0)) END AS items,
        coalesce(i.status, 'ok') NOT IN ('error', 'timeout') AS completed,
        coalesce(i.total_hits, i.returned) AS hits, coalesce(i.filtered, false) AS narrowed,
        -- What a filter left of nothing is no zero of the search, and alone says nothing of it.
        CASE WHEN completed AND NOT (narrowed AND hits = 0 AND NOT had AND NOT nothing)
            THEN hits = 0 AND NOT (narrowed AND had) END AS zero,
        (x.query_key IS NOT NULL AND i.next_us - i.last <= 300000000 AND coalesce(sat_low, 0) = 0)::INT AS reformulated
    FROM intents i LEFT JOIN clicked c USING (user_key, intent) LEFT JOIN seen USING (user_key, intent)
    LEFT JOIN carts k USING (user_key, intent) LEFT JOIN purchases p USING (user_key, intent)
    LEFT JOIN answers USING (user_key, intent)
    LEFT JOIN classes x ON x.query_key = i.query_key AND x.next_key = i.next_key
)
SELECT user_bucket, user_key, session, intent, local_day, arm, completed::INT AS completed,
    (coalesce(status, 'ok') = 'error')::INT AS error, zero::INT AS zero, (items > 0)::INT AS seen,
    (clicks > 0)::INT AS clicked, first_rank, sat_low, sat_high, cart, bought, answered, reformulated, latency_us,
    CASE WHEN time_us <= (SELECT max(time_us) FROM activity) - 86400000000 THEN bought END AS purchased,
    CASE WHEN seen OR zero THEN (clicks = 0 AND cart = 0 AND bought = 0)::INT END AS abandoned,
    CASE WHEN seen THEN greatest(0, CASE WHEN clicks > 0 THEN first_us ELSE coalesce(next_us, ended) END - time_us) END
        AS first_click
FROM joined;

CREATE TEMP TABLE sums AS
WITH search_sums AS (
    SELECT local_day, arm, user_key, grouping_id(local_day, arm) AS cut,
        sum(CASE WHEN seen = 1 THEN clicked ELSE 0 END) AS ctr, sum(coalesce(seen, 0)) AS seen,
        sum(CASE WHEN seen = 1 AND first_rank IS NOT NULL THEN 1.0 / first_rank ELSE 0 END) AS mrcr,
        sum(CASE WHEN seen = 1 AND NOT (clicked = 1 AND first_rank IS NULL) THEN 1 ELSE 0 END) AS ranked,
        sum(coalesce(zero, 0)) AS zero, count(zero) AS zero_of, sum(coalesce(abandoned, 0)) AS abandoned,
        count(abandoned) AS abandoned_of, sum(reformulated) AS reformulated, count(*) AS searches,
        sum(CASE WHEN seen = 1 THEN sat_high ELSE 0 END) AS sat, sum(coalesce(seen, 0)) AS seen_sat, sum(coalesce(purchased, 0)) AS bought,
        count(purchased) AS bought_of, sum(error) AS error
    FROM facts GROUP BY GROUPING SETS ((user_key), (local_day, user_key), (arm, user_key))
), session_facts AS (
    SELECT user_key, session, arg_min(local_day, intent) AS local_day, arg_min(arm, intent) AS arm,
        max(greatest(sat_high, cart, bought, answered)) AS success
    FROM facts GROUP BY ALL
), session_sums AS (
    SELECT local_day, arm, user_key, grouping_id(local_day, arm) AS cut, sum(success) AS success, count(*) AS sessions
    FROM session_facts GROUP BY GROUPING SETS ((user_key), (local_day, user_key), (arm, user_key))
)
SELECT s.*, success, sessions FROM search_sums s LEFT JOIN session_sums t ON s.user_key = t.user_key
    AND s.cut = t.cut AND s.local_day IS NOT DISTINCT FROM t.local_day AND s.arm IS NOT DISTINCT FROM t.arm;

CREATE TEMP TABLE moments AS
SELECT cut, local_day, arm, count(*) AS users,
    :moments
FROM sums GROUP BY ALL;

CREATE TEMP TABLE histograms AS
WITH times AS (
    SELECT 'latency' AS name, user_bucket, local_day, arm, latency_us AS us, false AS censored FROM facts
    WHERE latency_us IS NOT NULL
    UNION ALL
    SELECT 'first_click', user_bucket, local_day, arm, first_click, clicked = 0 FROM facts WHERE seen = 1
    UNION ALL
    SELECT 'dwell', c.user_bucket, local_day, arm, dwell_us, c.censored FROM clicks c JOIN facts USING (user_key, intent)
), bins AS (
    SELECT *, us // 1000 AS ms, CASE WHEN ms < 1000 THEN ms
        ELSE (ms // power(10, floor(log10(ms)) - 2)::BIGINT) * power(10, floor(log10(ms)) - 2)::BIGINT END AS bin
    FROM times
)
SELECT grouping_id(local_day, arm) AS cut, local_day, arm, name, user_bucket, bin, censored, count(*) AS n, sum(us) AS us
FROM bins GROUP BY GROUPING SETS (
    (name, user_bucket, bin, censored), (local_day, name, user_bucket, bin, censored), (arm, name, user_bucket, bin, censored));
