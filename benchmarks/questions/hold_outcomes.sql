WITH measured AS (
    SELECT world, "group", topic, reason, count(*) AS holds,
           quantile_cont(woken_us - held_us, [0.5, 0.9, 0.99]) AS part, max(woken_us - held_us) AS longest
    FROM holds GROUP BY ALL
)
SELECT world, "group", topic, reason, holds, round(part[1] / 1000, 3) AS p50_ms, round(part[2] / 1000, 3) AS p90_ms,
       round(part[3] / 1000, 3) AS p99_ms, round(longest / 1000, 3) AS max_ms
FROM measured
