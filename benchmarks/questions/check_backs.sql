WITH lives AS (
    SELECT *, coalesce(ended_us, put_aside_us, lost_us) AS gone_us FROM transactions
), minutes AS (
    SELECT world, broker, "group", end_us, unnest(range(0, end_us // 60000000 + 1)) AS minute
    FROM (SELECT DISTINCT world, broker, "group" FROM lives) JOIN worlds USING (world)
), ends AS (
    SELECT *, least((minute + 1) * 60000000, end_us) AS until_us, (minute + 1) * 60000000 AS next_us FROM minutes
), counted AS (
    SELECT e.world, e.broker, e."group", minute, until_us,
           count(*) FILTER (hidden_us // 60000000 = minute) AS begun,
           count(*) FILTER (gone_us // 60000000 = minute AND outcome = 'committed') AS committed,
           count(*) FILTER (gone_us // 60000000 = minute AND outcome = 'rolled back') AS rolled_back,
           count(*) FILTER (gone_us // 60000000 = minute AND outcome = 'put aside') AS put_aside,
           count(*) FILTER (gone_us // 60000000 = minute AND outcome = 'lost') AS lost,
           count(*) FILTER (hidden_us < next_us AND (gone_us IS NULL OR gone_us >= next_us)) AS "open",
           min(hidden_us) FILTER (hidden_us < next_us AND (gone_us IS NULL OR gone_us >= next_us)) AS oldest_us
    FROM ends e JOIN lives USING (world, broker, "group") GROUP BY ALL
), asked AS (
    SELECT world, node AS broker, "group", ts_us // 60000000 AS minute, count(*) AS asked,
           count(*) FILTER (remote = '') AS asked_nobody
    FROM events WHERE kind = 'TransactionChecked' GROUP BY ALL
)
SELECT c.*, coalesce(asked, 0) AS asked, coalesce(asked_nobody, 0) AS asked_nobody,
       round((until_us - oldest_us) / 1000, 3) AS oldest_open_ms
FROM counted c LEFT JOIN asked USING (world, broker, "group", minute)
