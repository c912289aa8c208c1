WITH sent AS (
    SELECT world, topic, '' AS "group", 'send' AS stage, '' AS cause, acknowledged_us - sent_us AS latency_us,
           producer AS other, producer AS node
    FROM messages WHERE acknowledged_us IS NOT NULL
), woken AS (
    SELECT world, node, remote, opaque, reason FROM events WHERE kind = 'PullWoken'
), brokers AS (
    SELECT DISTINCT world, broker_name, broker_id, node FROM events WHERE kind = 'BrokerStarted'
), slaves AS (
    SELECT DISTINCT s.world, s.node, m.node AS master
    FROM brokers s JOIN brokers m USING (world, broker_name) WHERE s.broker_id > 0 AND m.broker_id = 0
), answered AS (
    SELECT a.world, coalesce(master, a.node) AS node, a.node AS giver, a.topic, a.queue_id, a."group", coalesce(w.reason, 'first pull') AS cause,
           a.ts_us AS answered_us, unnest(range(a.queue_offset, a.next_offset)) AS queue_offset
    FROM (SELECT * FROM events WHERE kind = 'PullAnswered' AND messages > 0) a
    LEFT JOIN woken w USING (world, node, remote, opaque)
    LEFT JOIN slaves ON slaves.world = a.world AND slaves.node = a.node
), delivered AS (
    SELECT world, node, topic, queue_id, "group", queue_offset, min(answered_us) AS delivered_us,
           arg_min(cause, answered_us) AS cause, arg_min(giver, answered_us) AS giver
    FROM answered GROUP BY ALL
), stored AS (
    SELECT world, node, topic, queue_id, queue_offset, ts_us AS stored_us FROM events WHERE kind = 'MessageStored'
), pulled AS (
    SELECT world, topic, "group", 'wait in the queue' AS stage, cause, delivered_us - stored_us AS latency_us,
           node AS other, giver AS node
    FROM stored JOIN delivered USING (world, node, topic, queue_id, queue_offset)
), got AS (
    SELECT world, topic, "group", producer, broker, first_consumer, consumer, sent_us, stored_us, first_us, consumed_us, calls
    FROM deliveries JOIN messages USING (world, msg_id) WHERE first_us IS NOT NULL
), stages AS (
    FROM sent
    UNION ALL FROM pulled
    UNION ALL SELECT world, topic, "group", 'stored to listener', '', first_us - stored_us, broker, first_consumer
              FROM got WHERE stored_us IS NOT NULL
    UNION ALL SELECT world, topic, "group", 'end to end', '', first_us - sent_us, producer, first_consumer FROM got
    UNION ALL SELECT world, topic, "group", 'listener to done', CASE WHEN calls > 1 THEN 'called again' ELSE '' END,
                     consumed_us - first_us, first_consumer, consumer
              FROM got WHERE stored_us IS NOT NULL AND consumed_us IS NOT NULL
), one AS (
    SELECT world, other AS node, node AS other, offset_us AS ahead_us, uncertainty_us FROM clocks
    UNION ALL SELECT world, node, other, -offset_us, uncertainty_us FROM clocks
), steps AS (
    SELECT 1 AS steps, * FROM one
    UNION ALL SELECT 2, a.world, a.node, b.other, a.ahead_us + b.ahead_us, a.uncertainty_us + b.uncertainty_us
              FROM one a JOIN one b ON a.world = b.world AND a.other = b.node WHERE a.node != b.other
), wrong AS (
    SELECT world, node, other, best[3] AS ahead_us, best[2] AS uncertainty_us
    FROM (SELECT world, node, other, min((steps, uncertainty_us, ahead_us)) AS best FROM steps GROUP BY ALL)
    WHERE abs(best[3]) > best[2]
), corrected AS (
    SELECT * REPLACE (latency_us - coalesce(ahead_us, 0) AS latency_us)
    FROM stages LEFT JOIN wrong USING (world, node, other)
), rounded AS (
    SELECT *, latency_us - latency_us % (10 ** greatest(length(abs(latency_us)::VARCHAR) - 4, 0))::BIGINT AS four_digits FROM corrected
), measured AS (
    SELECT topic, "group", stage, cause, count(*) AS count, quantile_cont(four_digits, [0.5, 0.9, 0.99]) AS part,
           max(latency_us) AS longest, count(ahead_us) AS corrected, max(uncertainty_us) AS uncertain_us
    FROM rounded GROUP BY topic, "group", stage, cause
)
SELECT topic, "group", stage, cause, count, round(part[1] / 1000, 3) AS p50_ms, round(part[2] / 1000, 3) AS p90_ms,
       round(part[3] / 1000, 3) AS p99_ms, round(longest / 1000, 3) AS max_ms, corrected,
       round(uncertain_us / 1000, 3) AS uncertain_ms
FROM measured
