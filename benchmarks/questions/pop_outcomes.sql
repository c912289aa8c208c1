WITH by_outcome AS (
    SELECT world, "group", topic, outcome, count(*) AS deliveries, sum(changes)::BIGINT AS changes,
           round(quantile_cont((coalesce(acked_us, revived_us, again_us) - popped_us) / 1000, 0.5), 3) AS median_ms,
           round(max((coalesce(acked_us, revived_us, again_us) - popped_us) / 1000), 3) AS slowest_ms
    FROM pops GROUP BY ALL
)
SELECT world, "group", topic, outcome, deliveries,
       round(deliveries / sum(deliveries) OVER (PARTITION BY world, "group", topic), 6) AS share,
       changes, median_ms, slowest_ms
FROM by_outcome
