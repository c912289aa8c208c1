WITH wants AS (
    SELECT world, "group", topic, arg_max(expression, ts_us) AS expression
    FROM events WHERE kind = 'SubscriptionChanged' AND expression != '' AND NOT starts_with(topic, '%RETRY%')
    GROUP BY ALL
), expected AS (
    SELECT * FROM messages JOIN wants USING (world, topic) WHERE acknowledged_us IS NOT NULL
), copies AS (
    SELECT world, node, topic, unique_key AS msg_id, commit_log_offset, ts_us FROM events WHERE kind = 'MessageStored'
), ends AS (
    SELECT world, node, commit_log_max_offset, ts_us AS recovered_us FROM events WHERE kind = 'StoreRecovered'
), torn AS (
    SELECT world, node, topic, msg_id, commit_log_offset, min(recovered_us) AS torn_us
    FROM copies JOIN ends USING (world, node)
    WHERE recovered_us > ts_us AND commit_log_offset >= commit_log_max_offset
    GROUP BY ALL
), surviving AS (
    SELECT world, msg_id, topic, count(*) FILTER (torn_us IS NULL) AS "left", max(torn_us) AS torn_us
    FROM copies LEFT JOIN torn USING (world, node, topic, msg_id, commit_log_offset)
    GROUP BY ALL
), passed_over AS (
    SELECT world, node AS broker, "group", topic, queue_id, queue_offset AS committed_offset, ts_us AS committed_us
    FROM events WHERE kind = 'OffsetCommitted'
    QUALIFY row_number() OVER (
        PARTITION BY world, node, "group", topic, queue_id ORDER BY ts_us DESC, slice DESC, i DESC
    ) = 1
), woken AS (
    SELECT world, target AS last_consumer, max(ts_us) AS thawed_us FROM events WHERE kind = 'NodeThawed' GROUP BY ALL
), together AS (
    SELECT *, first_us IS NULL AS never_got,
           first_us IS NULL AND coalesce(committed_offset > queue_offset, false) AS passed,
           first_us IS NULL AND coalesce("left", 0) = 0 AS gone
    FROM expected
    LEFT JOIN deliveries USING (world, msg_id, "group")
    LEFT JOIN surviving USING (world, msg_id, topic)
    LEFT JOIN passed_over USING (world, broker, "group", topic, queue_id)
    LEFT JOIN woken USING (world, last_consumer)
)
SELECT world, "group", topic, msg_id, broker, queue_id, queue_offset, acknowledged_us,
       CASE WHEN consumed_us IS NOT NULL THEN 'consumed'
            WHEN dead_us IS NOT NULL THEN 'dead'
            WHEN last_back_us IS NOT NULL THEN 'in retry'
            WHEN gone THEN 'LOST'
            WHEN passed AND expression = '*' THEN 'LOST'
            WHEN passed THEN 'filtered'
            ELSE 'waiting' END AS status,
       CASE WHEN consumed_us IS NOT NULL THEN 'the listener was done with it'
            WHEN dead_us IS NOT NULL THEN 'it became a dead letter'
            WHEN last_back_us IS NOT NULL THEN 'it was given back'
            WHEN gone THEN 'every copy was cut off the commit log'
            WHEN passed THEN 'the group''s offset was committed behind it'
            WHEN never_got THEN 'it is in its queue'
            ELSE 'a listener got it and has not ended' END AS proof,
       CASE WHEN gone THEN coalesce(torn_us, acknowledged_us)
            WHEN passed THEN committed_us
            ELSE coalesce(consumed_us, dead_us, last_back_us, first_us, stored_us) END AS proof_us,
       coalesce(calls, 0) AS calls,
       greatest(coalesce(successes, 0) - 1, 0) AS duplicates,
       CASE WHEN coalesce(successes, 0) > 1 THEN
            CASE WHEN together.copies > 1 THEN 'stored twice: the producer tried again'
                 WHEN given_back > 0 THEN 'given back: a listener failed or took too long'
                 WHEN consumer != last_consumer AND thawed_us BETWEEN consumed_us AND last_done_us
                 THEN 'a member that hung went on with what it held, though others had consumed it meanwhile'
                 WHEN consumers > 1 THEN 'the queue moved: the new owner began at the committed offset'
                 ELSE 'the consumer began again at the committed offset' END END AS duplicate_reason
FROM together
