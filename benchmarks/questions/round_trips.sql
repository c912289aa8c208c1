WITH by_outcome AS (
    SELECT world, topic, outcome, reply, count(*) AS requests,
           round(quantile_cont((coalesce(answered_us, given_up_us) - asked_us) / 1000, 0.5), 3) AS median_ms,
           round(quantile_cont((coalesce(answered_us, given_up_us) - asked_us) / 1000, 0.99), 3) AS p99_ms,
           round(max((coalesce(answered_us, given_up_us) - asked_us) / 1000), 3) AS slowest_ms,
           round(max(CASE WHEN reply = 'late' THEN late_us - given_up_us END) / 1000, 3) AS latest_ms,
           count(*) FILTER (replies > 1) AS replied_again
    FROM replies GROUP BY ALL
)
SELECT *, round(requests / sum(requests) OVER (PARTITION BY world, topic), 6) AS share FROM by_outcome
