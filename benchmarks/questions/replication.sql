WITH lacking AS (
    SELECT *, least(copied_us, gone_us) AS until_us, greatest(lacked_us, acknowledged_us) AS risk_us FROM replicas
), seconds AS (
    SELECT world, broker_name, master, slave, end_us, unnest(range(0, end_us // 1000000 + 1)) AS second
    FROM (SELECT DISTINCT world, broker_name, master, slave FROM replicas) JOIN worlds USING (world)
), told AS (
    SELECT s.*, (second + 1) * 1000000 AS next_us FROM seconds s
), behind AS (
    SELECT world, broker_name, master, slave, second, least(next_us, end_us) AS until_us,
           count(*) FILTER (lacked_us // 1000000 = second AND why = 'written') AS written,
           count(*) FILTER (copied_us // 1000000 = second AND copied_us = l.until_us) AS copied,
           round(max(copied_us - lacked_us) FILTER (copied_us // 1000000 = second AND copied_us = l.until_us) / 1000, 3)
               AS slowest_copy_ms,
           count(*) FILTER (lacked_us < next_us AND (l.until_us IS NULL OR l.until_us >= next_us)) AS behind,
           coalesce(sum(store_size) FILTER (lacked_us < next_us AND (l.until_us IS NULL OR l.until_us >= next_us)), 0)
               ::BIGINT AS behind_bytes,
           min(lacked_us) FILTER (lacked_us < next_us AND (l.until_us IS NULL OR l.until_us >= next_us)) AS oldest_us,
           count(*) FILTER (acknowledged_us IS NOT NULL AND risk_us < next_us
                            AND (l.until_us IS NULL OR l.until_us >= next_us)) AS only_here
    FROM told JOIN lacking l USING (world, broker_name, master, slave) GROUP BY ALL
), waits AS (
    SELECT world, node AS master, ts_us // 1000000 AS second, count(*) FILTER (status = 'PUT_OK') AS sync_ok,
           count(*) FILTER (status != 'PUT_OK') AS sync_timed_out, max(waited_ms) AS longest_wait_ms
    FROM events WHERE kind = 'ReplicaPutAnswered' GROUP BY ALL
)
SELECT b.*, coalesce(round((until_us - oldest_us) / 1000, 3), 0.0) AS lag_ms, coalesce(sync_ok, 0) AS sync_ok,
       coalesce(sync_timed_out, 0) AS sync_timed_out, longest_wait_ms
FROM behind b LEFT JOIN waits USING (world, master, second)
