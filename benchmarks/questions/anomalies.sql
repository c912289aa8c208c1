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
    SELECT DISTINCT world, broker, topic, queue_id, queue_offset, msg_id AS other_id, commit_log_offset AS other_at,
           true AS torn
    FROM (SELECT world, node AS broker, topic, queue_id, queue_offset, unique_key AS msg_id, commit_log_offset, ts_us
          FROM events WHERE kind = 'MessageStored') JOIN ends USING (world, broker)
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
), began AS (
    SELECT e.world, b.broker, "group", topic, queue_id, arg_min(queue_offset, (ts_us, slice, i)) AS began_at
    FROM events e JOIN names b USING (world, broker_name) WHERE kind = 'QueueAllocated' GROUP BY ALL
), first_stored AS (
    SELECT world, unique_key AS msg_id, min((ts_us, node, topic, queue_id, queue_offset)) AS first
    FROM events WHERE kind = 'MessageStored' AND unique_key != '' GROUP BY ALL
), ahead AS (
    SELECT world, other AS node, node AS broker, offset_us AS ahead_us, uncertainty_us FROM clocks WHERE disagrees
    UNION ALL
    SELECT world, node, other, -offset_us, uncertainty_us FROM clocks WHERE disagrees
), seen AS (
    SELECT d.world, d.msg_id, d."group", first_us, coalesce(first_us, consumed_us) AS got_us,
           coalesce(first_consumer, consumer) AS node, first[1] AS stored_us, first[2] AS broker, first[4] AS queue_id,
           first[5] AS queue_offset, coalesce(m.topic, first[3]) AS topic
    FROM deliveries d LEFT JOIN first_stored USING (world, msg_id)
    LEFT JOIN (SELECT world, msg_id, topic FROM messages) m ON m.world = d.world AND m.msg_id = d.msg_id
    WHERE calls > 0 OR successes > 0
), all_calls AS (
    SELECT world, "group", node, topic, broker_name, queue_id, queue_offset, msg_id, ts_us, reconsume_times FROM events
    WHERE kind = 'ConsumeStarted'
    UNION ALL
    SELECT world, "group", node, topic, broker_name, queue_id, queue_offset, msg_id, ts_us, 0 FROM events
    WHERE kind = 'MessagesPolled'
), brokers AS (
    SELECT DISTINCT world, node, broker_name FROM events WHERE kind = 'BrokerStarted'
), places AS (
    SELECT DISTINCT world, "group", b.broker_name, topic, queue_id, unnest(range(queue_offset, next_offset)) AS place
    FROM events e JOIN brokers b USING (world, node) WHERE kind = 'PullAnswered' AND messages > 0
), popped AS (
    SELECT DISTINCT world, "group", unique_key AS msg_id FROM events WHERE kind = 'MessagePopped'
), subscribed AS (
    SELECT DISTINCT world, "group", topic FROM events WHERE kind = 'SubscriptionChanged' AND expression != ''
), fine AS (
    FROM subscribed
    UNION
    SELECT world, "group", topic FROM events
    ANTI JOIN (FROM subscribed WHERE topic NOT LIKE '\%RETRY\%%' ESCAPE '\' AND topic NOT LIKE '\%DLQ\%%' ESCAPE '\') s
        USING (world, "group")
    WHERE kind IN ('PullReceived', 'PopReceived')
), answers AS (
SELECT world, 'lost write' AS anomaly, "group", topic, broker, queue_id, queue_offset, msg_id, broker AS node,
       proof_us AS ts_us, acknowledged_us AS before_us, NULL AS before_offset, NULL AS before_msg_id, proof,
       CASE WHEN starts_with(proof, 'every copy') THEN 'acknowledged before it was on the disk (ASYNC_FLUSH)'
            WHEN starts_with(proof, 'it was acknowledged') THEN NULL
            WHEN EXISTS (
                FROM torn t WHERE t.world = audit.world AND t.broker = audit.broker AND t.topic = audit.topic
                   AND t.queue_id = audit.queue_id AND t.queue_offset = audit.queue_offset AND other_id != audit.msg_id
            ) THEN 'its offset had been committed for a message that was torn away'
            WHEN began_at > queue_offset THEN 'the group began behind it (ConsumeFromWhere)' END AS reason, fault, fault_us
FROM audit LEFT JOIN began USING (world, broker, "group", topic, queue_id) WHERE status = 'LOST'
UNION ALL
SELECT world, 'unobserved', "group", topic, broker, queue_id, queue_offset, msg_id, broker, proof_us, acknowledged_us,
       NULL, NULL, proof, 'the trace ends before', NULL, NULL
FROM audit WHERE status = 'waiting' AND calls = 0
UNION ALL
SELECT world, 'nonmonotonic', "group", topic, broker, queue_id, queue_offset, msg_id, node, ts_us, before_us,
       before_offset, before_msg_id, format('it was given offset {} after {}', queue_offset, before_offset),
       'its own offset was corrected, or it could not give the message back and kept it', NULL, NULL
FROM given WHERE queue_offset <= before_offset
UNION ALL
SELECT world, 'skip', "group", topic, broker, queue_id, queue_offset, msg_id, node, ts_us, before_us, before_offset,
       before_msg_id,
       format('offset {} came after {}, and {} lay between', queue_offset, before_offset, left_out),
       'its offset was corrected: the queue was shorter than the group''s progress', NULL, NULL
FROM skipped
UNION ALL
SELECT world, 'duplicate', NULL, topic, broker, queue_id, queue_offset, msg_id, broker, ts_us, first[2], first[1],
       msg_id, 'the message had been stored before',
       CASE WHEN is_half THEN 'its transaction was committed twice: the broker had asked about it again'
            ELSE 'the answer to the first attempt did not come in time, and the producer tried again' END, NULL, NULL
FROM again LEFT JOIN halves USING (world, msg_id) WHERE slice > first[3]
UNION ALL
SELECT world, 'inconsistent offsets', NULL, topic, broker, queue_id, queue_offset, msg_id, broker, ts_us, other_us,
       queue_offset, other_id, 'another message had been stored at this place',
       CASE WHEN torn THEN 'the broker lost power before it had flushed the first one' END, NULL, NULL
FROM used_twice
LEFT JOIN (SELECT DISTINCT world, broker, topic, other_id, other_at, torn FROM torn)
    USING (world, broker, topic, other_id, other_at)
UNION ALL
SELECT world, 'nonmonotonic send', NULL, topic, broker, queue_id, queue_offset, msg_id, producer, acknowledged_us,
       earlier[3], earlier[1], earlier[2], 'what was sent before lies behind it',
       CASE WHEN earlier[5] THEN 'what was sent before is of a transaction, and has the place of its commit'
            WHEN earlier[3] > sent_us THEN 'it was sent before the answer had come' END, NULL, NULL
FROM sent WHERE earlier[1] > queue_offset AND earlier[4] < sent_us
UNION ALL
SELECT world, 'aborted read', "group", topic, broker, queue_id, queue_offset, msg_id, consumer, first_us, failed_us,
       NULL, NULL, 'the producer had given the message up, or did later',
       'it was stored, and the answer did not come in time', NULL, NULL
FROM got WHERE first_us IS NOT NULL AND failed_us IS NOT NULL AND acknowledged_us IS NULL
UNION ALL
SELECT got.world, 'redelivered', got."group", got.topic, got.broker, got.queue_id, got.queue_offset, got.msg_id,
       last_consumer, last_done_us, consumed_us, got.queue_offset, got.msg_id,
       format('the group was done with it {} times', successes), duplicate_reason, fault, fault_us
FROM got LEFT JOIN (SELECT * FROM audit WHERE duplicates > 0) a
    ON a.world = got.world AND a."group" = got."group" AND a.msg_id = got.msg_id
WHERE successes > 1
UNION ALL
SELECT world, 'out of order', "group", topic, broker, queue_id, queue_offset, msg_id, node, consumed_us, later_us,
       later_offset, later_msg_id, format('the group was done with offset {} before', later_offset), reason, NULL, NULL
FROM order_violations
UNION ALL
SELECT world, 'never stored', "group", topic, broker, queue_id, queue_offset, msg_id, node, got_us, NULL, NULL, NULL,
       'no event says that it was stored', NULL, NULL, NULL
FROM seen WHERE stored_us IS NULL
UNION ALL
SELECT s.world, 'before it was stored', "group", topic, s.broker, queue_id, queue_offset, msg_id, s.node, got_us, stored_us,
       NULL, NULL, format('it was stored {} us later', stored_us - got_us),
       CASE WHEN got_us - ahead_us >= stored_us - uncertainty_us
            THEN format('the clock of who got it is {} us behind the broker''s', -ahead_us) END, NULL, NULL
FROM seen s LEFT JOIN ahead a ON a.world = s.world AND a.node = s.node AND a.broker = s.broker WHERE got_us < stored_us
UNION ALL
SELECT world, 'never handed out', "group", topic, broker, queue_id, queue_offset, msg_id, node, got_us, NULL, NULL, NULL,
       'a listener ended with it, and no event says that it began', NULL, NULL, NULL
FROM seen WHERE first_us IS NULL
UNION ALL
SELECT c.world, 'never handed out', c."group", c.topic, n.broker, c.queue_id, c.queue_offset, c.msg_id, c.node, ts_us, NULL,
       NULL, NULL, 'a listener was called with it, and no pull or pop of the group went over it', NULL, NULL, NULL
FROM all_calls c LEFT JOIN names n USING (world, broker_name) ANTI JOIN popped USING (world, "group", msg_id)
WHERE NOT EXISTS (
    FROM places p WHERE p.world = c.world AND p."group" = c."group" AND p.broker_name = c.broker_name
       AND p.queue_id = c.queue_id AND p.place = c.queue_offset
       AND (p.topic = c.topic OR c.reconsume_times > 0 AND p.topic = '%RETRY%' || c."group")
)
UNION ALL
SELECT c.world, 'wrong group', c."group", c.topic, n.broker, c.queue_id, c.queue_offset, c.msg_id, c.node, ts_us, NULL, NULL,
       NULL, 'no subscription of the group to the topic is told', NULL, NULL, NULL
FROM all_calls c LEFT JOIN names n USING (world, broker_name) ANTI JOIN fine USING (world, "group", topic)
WHERE NOT starts_with(c.topic, '%RETRY%') AND NOT starts_with(c.topic, '%DLQ%')
)
SELECT *, map {
    'lost write': 'lost-write', 'unobserved': 'unseen', 'skip': 'poll-skip', 'nonmonotonic': 'nonmonotonic-poll',
    'nonmonotonic send': 'nonmonotonic-send', 'duplicate': 'duplicate', 'inconsistent offsets': 'inconsistent-offsets',
    'aborted read': 'G1a', 'never stored': 'unexpected'
}[anomaly] AS jepsen
FROM answers
