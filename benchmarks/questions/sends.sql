SELECT world, topic, mode,
       CASE WHEN send_status = 'SEND_OK' THEN 'acknowledged'
            WHEN acknowledged_us IS NOT NULL THEN 'acknowledged, less safely'
            WHEN failed_us IS NOT NULL THEN 'given up'
            WHEN mode = 'ONEWAY' THEN 'one-way'
            ELSE 'open' END AS outcome,
       count(*) AS messages,
       sum(attempts)::BIGINT AS attempts,
       count(*) FILTER (attempts > 1) AS tried_again,
       max(attempts) AS most_attempts,
       sum(failed_attempts)::BIGINT AS failed_attempts,
       sum(timed_out)::BIGINT AS timed_out,
       count(stored_us) AS stored,
       count(*) FILTER (copies > 1) AS stored_again
FROM messages
GROUP BY ALL
