WITH names AS (
    SELECT DISTINCT world, node AS broker, broker_name FROM events WHERE kind = 'BrokerStarted' AND broker_id = 0
), told AS (
    SELECT world, "group", node, topic, broker_name, queue_id, ts_us, slice, i, 1 AS takes, NULL::BIGINT AS queue_offset,
           NULL::VARCHAR AS msg_id, NULL::BIGINT AS last_offset
    FROM events WHERE kind IN ('QueueAllocated', 'QueueSought')
    UNION ALL
    SELECT world, "group", node, topic, broker_name, queue_id, ts_us, slice, i, 0, queue_offset, msg_id,
           queue_offset + messages - 1
    FROM events WHERE kind = 'ConsumeStarted' AND reconsume_times = 0
), numbered AS (
    SELECT *, sum(takes) OVER (
        PARTITION BY world, "group", node, topic, broker_name, queue_id ORDER BY ts_us, slice, i
    ) AS assignment
    FROM told
), calls AS (
    SELECT *, max((last_offset, msg_id, ts_us)) FILTER (takes = 0) OVER (
        PARTITION BY world, "group", node, topic, broker_name, queue_id, assignment ORDER BY ts_us, slice, i
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS earlier
    FROM numbered
), given AS (
    SELECT calls.*, broker, earlier[1] AS before_offset, earlier[2] AS before_msg_id, earlier[3] AS before_us
    FROM calls JOIN names USING (world, broker_name) WHERE takes = 0 AND earlier IS NOT NULL
), wants AS (
    SELECT DISTINCT world, "group", topic FROM events WHERE kind = 'SubscriptionChanged' AND expression = '*'
), there AS (
    SELECT world, node AS broker, topic, queue_id, queue_offset AS place, ts_us AS stored_us
    FROM events WHERE kind = 'MessageStored'
), skipped AS (
    SELECT g.world, g."group", g.topic, g.broker, g.queue_id, g.queue_offset, g.msg_id, g.node, g.ts_us, g.slice, g.i,
           g.before_us, g.before_offset, g.before_msg_id, count(DISTINCT t.place) AS left_out
    FROM given g SEMI JOIN wants USING (world, "group", topic)
    JOIN there t ON t.world = g.world AND t.broker = g.broker AND t.topic = g.topic AND t.queue_id = g.queue_id
    WHERE g.queue_offset > g.before_offset + 1
      AND t.place > g.before_offset AND t.place < g.queue_offset AND t.stored_us < g.ts_us
    GROUP BY ALL
), stored AS (
    SELECT world, node AS broker, topic, queue_id, queue_offset, unique_key AS msg_id, ts_us, slice, i, commit_log_offset
    FROM events WHERE kind = 'MessageStored' AND unique_key != ''
), ends AS (
    SELECT world, node AS broker, commit_log_max_offset, ts_us AS recovered_us FROM events WHERE kind = 'StoreRecovered'
), torn AS (
    SELECT DISTINCT world, broker, topic, msg_id AS other_id, commit_log_offset AS other_at, true AS torn
    FROM (SELECT world, node AS broker, topic, unique_key AS msg_id, commit_log_offset, ts_us FROM events
          WHERE kind = 'MessageStored') JOIN ends USING (world, broker)
    WHERE recovered_us > ts_us AND commit_log_offset >= commit_log_max_offset
), halves AS (
    SELECT DISTINCT world, unique_key AS msg_id, true AS is_half FROM events
    WHERE kind = 'HalfMessageHidden'
      AND status IN ('PUT_OK', 'FLUSH_DISK_TIMEOUT', 'FLUSH_SLAVE_TIMEOUT', 'SLAVE_NOT_AVAILABLE')
), again AS (
    SELECT *, first_value((queue_offset, ts_us, slice)) OVER (
        PARTITION BY world, msg_id, topic ORDER BY ts_us, slice, i
    ) AS first
    FROM stored SEMI JOIN messages USING (world, msg_id, topic)
), placed AS (
    SELECT *, lag((msg_id, ts_us, commit_log_offset)) OVER (
        PARTITION BY world, broker, topic, queue_id, queue_offset ORDER BY ts_us, slice, i
    ) AS other
    FROM stored
), used_twice AS (
    SELECT *, other[1] AS other_id, other[2] AS other_us, other[3] AS other_at FROM placed WHERE other[1] != msg_id
), sent AS (
    SELECT *, lag((queue_offset, msg_id, acknowledged_us, sent_us, is_half)) OVER (
        PARTITION BY world, producer, topic, broker, queue_id ORDER BY sent_us, msg_id
    ) AS earlier
    FROM messages LEFT JOIN halves USING (world, msg_id)
    WHERE acknowledged_us IS NOT NULL AND queue_offset IS NOT NULL
), got AS (
    SELECT d.*, m.topic, m.broker, m.queue_id, m.queue_offset, m.failed_us, m.acknowledged_us
    FROM deliveries d JOIN messages m USING (world, msg_id)
)
SELECT world, 'lost write' AS anomaly, "group", topic, broker, queue_id, queue_offset, msg_id, broker AS node,
       proof_us AS ts_us, acknowledged_us AS before_us, NULL AS before_offset, NULL AS before_msg_id, proof,
       CASE WHEN starts_with(proof, 'every copy') THEN 'acknowledged before it was on the disk (ASYNC_FLUSH)'
            ELSE 'its offset had been committed for a message that was torn away' END AS reason
FROM audit WHERE status = 'LOST'
UNION ALL
SELECT world, 'unobserved', "group", topic, broker, queue_id, queue_offset, msg_id, broker, proof_us, acknowledged_us,
       NULL, NULL, proof, 'the trace ends before'
FROM audit WHERE status = 'waiting' AND calls = 0
UNION ALL
SELECT world, 'nonmonotonic', "group", topic, broker, queue_id, queue_offset, msg_id, node, ts_us, before_us,
       before_offset, before_msg_id, format('it was given offset {} after {}', queue_offset, before_offset),
       'its own offset was corrected, or it could not give the message back and kept it'
FROM given WHERE queue_offset <= before_offset
UNION ALL
SELECT world, 'skip', "group", topic, broker, queue_id, queue_offset, msg_id, node, ts_us, before_us, before_offset,
       before_msg_id,
       format('offset {} came after {}, and {} lay between', queue_offset, before_offset, left_out),
       'its offset was corrected: the queue was shorter than the group''s progress'
FROM skipped
UNION ALL
SELECT world, 'duplicate', NULL, topic, broker, queue_id, queue_offset, msg_id, broker, ts_us, first[2], first[1],
       msg_id, 'the message had been stored before',
       CASE WHEN is_half THEN 'its transaction was committed twice: the broker had asked about it again'
            ELSE 'the answer to the first attempt did not come in time, and the producer tried again' END
FROM again LEFT JOIN halves USING (world, msg_id) WHERE slice > first[3]
UNION ALL
SELECT world, 'inconsistent offsets', NULL, topic, broker, queue_id, queue_offset, msg_id, broker, ts_us, other_us,
       queue_offset, other_id, 'another message had been stored at this place',
       CASE WHEN torn THEN 'the broker lost power before it had flushed the first one' END
FROM used_twice LEFT JOIN torn USING (world, broker, topic, other_id, other_at)
UNION ALL
SELECT world, 'nonmonotonic send', NULL, topic, broker, queue_id, queue_offset, msg_id, producer, acknowledged_us,
       earlier[3], earlier[1], earlier[2], 'what was sent before lies behind it',
       CASE WHEN earlier[5] THEN 'what was sent before is of a transaction, and has the place of its commit'
            WHEN earlier[3] > sent_us THEN 'it was sent before the answer had come' END
FROM sent WHERE earlier[1] > queue_offset AND earlier[4] < sent_us
UNION ALL
SELECT world, 'aborted read', "group", topic, broker, queue_id, queue_offset, msg_id, consumer, first_us, failed_us,
       NULL, NULL, 'the producer had given the message up, or did later',
       'it was stored, and the answer did not come in time'
FROM got WHERE first_us IS NOT NULL AND failed_us IS NOT NULL AND acknowledged_us IS NULL
UNION ALL
SELECT got.world, 'redelivered', got."group", got.topic, got.broker, got.queue_id, got.queue_offset, got.msg_id,
       last_consumer, last_done_us, consumed_us, got.queue_offset, got.msg_id,
       format('the group was done with it {} times', successes), duplicate_reason
FROM got LEFT JOIN (SELECT * FROM audit WHERE duplicates > 0) a
    ON a.world = got.world AND a."group" = got."group" AND a.msg_id = got.msg_id
WHERE successes > 1
UNION ALL
SELECT world, 'out of order', "group", topic, broker, queue_id, queue_offset, msg_id, node, consumed_us, later_us,
       later_offset, later_msg_id, format('the group was done with offset {} before', later_offset), reason
FROM order_violations
