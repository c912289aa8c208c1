WITH by_outcome AS (
    SELECT world, "group", topic, outcome, count(*) AS transactions, count(*) FILTER (from_check) AS after_a_question,
           sum(asked)::BIGINT AS asked, max(asked) AS most_asked, count(*) FILTER (commits > 1) AS committed_again,
           round(quantile_cont((coalesce(ended_us, put_aside_us, lost_us) - hidden_us) / 1000, 0.5), 3) AS median_ms,
           round(max((coalesce(ended_us, put_aside_us, lost_us) - hidden_us) / 1000), 3) AS slowest_ms
    FROM transactions GROUP BY ALL
)
SELECT *, round(transactions / sum(transactions) OVER (PARTITION BY world, "group", topic), 6) AS share FROM by_outcome
