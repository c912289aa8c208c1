WITH wants AS (
    SELECT world, "group", topic, arg_max(expression, ts_us) AS expression
    FROM events WHERE kind = 'SubscriptionChanged' AND expression != '' AND NOT starts_with(topic, '%RETRY%')
    GROUP BY ALL
), expected AS (
    SELECT * FROM messages JOIN wants USING (world, topic) WHERE acknowledged_us IS NOT NULL
), copies AS (
    SELECT world, node, topic, unique_key AS msg_id, commit_log_offset, store_size, ts_us
    FROM events WHERE kind = 'MessageStored'
), ends AS (
    SELECT world, node, commit_log_max_offset, ts_us AS recovered_us FROM events WHERE kind = 'StoreRecovered'
), torn AS (
    SELECT world, node, topic, msg_id, commit_log_offset, min(recovered_us) AS torn_us, min(ts_us) AS stored_us,
           max(store_size) AS store_size
    FROM copies JOIN ends USING (world, node)
    WHERE recovered_us > ts_us AND commit_log_offset >= commit_log_max_offset
    GROUP BY ALL
), brokers AS (
    SELECT DISTINCT world, broker_name, broker_id, node FROM events WHERE kind = 'BrokerStarted'
), pairs AS (
    SELECT DISTINCT s.world, s.node AS slave, m.node AS master
    FROM brokers s JOIN brokers m USING (world, broker_name) WHERE s.broker_id > 0 AND m.broker_id = 0
), on_slaves AS (
    SELECT DISTINCT t.world, t.node, topic, t.msg_id, t.commit_log_offset, true AS on_slave
    FROM torn t JOIN pairs p ON p.world = t.world AND p.master = t.node
    JOIN (SELECT world, node, commit_log_offset AS begins, commit_log_offset + body_bytes AS ends, ts_us AS copied_us
          FROM events WHERE kind = 'ReplicaDataAppended') a
        ON a.world = t.world AND a.node = slave AND begins < t.commit_log_offset + t.store_size
       AND t.commit_log_offset + t.store_size <= ends
       AND copied_us > stored_us AND copied_us <= torn_us
    WHERE NOT EXISTS (
        FROM ends e WHERE e.world = t.world AND e.node = slave AND e.recovered_us > copied_us
                      AND e.commit_log_max_offset <= t.commit_log_offset
    )
), surviving AS (
    SELECT world, msg_id, topic, count(*) FILTER (torn_us IS NULL) AS "left", max(torn_us) AS torn_us,
           count(on_slave) AS on_slaves
    FROM copies LEFT JOIN torn USING (world, node, topic, msg_id, commit_log_offset)
    LEFT JOIN on_slaves USING (world, node, topic, msg_id, commit_log_offset)
    GROUP BY ALL
), torn_halves AS (
    SELECT world, msg_id, count(*) AS torn_halves, max(torn_us) AS halves_torn_us
    FROM torn WHERE topic = 'RMQ_SYS_TRANS_HALF_TOPIC' GROUP BY ALL
), ends_of_halves AS (
    SELECT world, unique_key AS msg_id,
           min(ts_us) FILTER (kind = 'HalfMessageHidden' AND status IN (
               'PUT_OK', 'FLUSH_DISK_TIMEOUT', 'FLUSH_SLAVE_TIMEOUT', 'SLAVE_NOT_AVAILABLE')) AS hidden_us,
           count(*) FILTER (kind = 'TransactionEnded' AND code = 0 AND local_state = 'COMMIT_MESSAGE') AS commits,
           min(ts_us) FILTER (kind = 'TransactionEnded' AND code = 0 AND local_state = 'ROLLBACK_MESSAGE')
               AS rolled_back_us,
           min(ts_us) FILTER (kind = 'HalfMessageGivenUp') AS put_aside_us,
           count(*) FILTER (kind = 'MessageStored' AND topic = 'RMQ_SYS_TRANS_HALF_TOPIC') AS copies_of_half
    FROM events WHERE kind IN ('HalfMessageHidden', 'TransactionEnded', 'HalfMessageGivenUp', 'MessageStored')
    GROUP BY ALL
), halves AS (
    SELECT world, msg_id, hidden_us, commits, rolled_back_us, put_aside_us, halves_torn_us,
           copies_of_half - coalesce(torn_halves, 0) AS halves
    FROM ends_of_halves LEFT JOIN torn_halves USING (world, msg_id) WHERE hidden_us IS NOT NULL
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
           first_us IS NULL AND coalesce("left", 0) = 0 AS gone, gone AND coalesce(on_slaves, 0) > 0 AS on_slave,
           gone AND NOT on_slave AND hidden_us IS NOT NULL AS is_half,
           is_half AND commits = 0 AND rolled_back_us IS NOT NULL AS rolled_back,
           is_half AND commits = 0 AND put_aside_us IS NOT NULL AS put_aside,
           is_half AND halves > 0 AS waits_for_its_end
    FROM expected
    LEFT JOIN deliveries USING (world, msg_id, "group")
    LEFT JOIN surviving USING (world, msg_id, topic)
    LEFT JOIN halves USING (world, msg_id)
    LEFT JOIN passed_over USING (world, broker, "group", topic, queue_id)
    LEFT JOIN woken USING (world, last_consumer)
)
SELECT world, "group", topic, msg_id, broker, queue_id, queue_offset, acknowledged_us,
       CASE WHEN consumed_us IS NOT NULL THEN 'consumed'
            WHEN dead_us IS NOT NULL THEN 'dead'
            WHEN last_back_us IS NOT NULL THEN 'in retry'
            WHEN rolled_back THEN 'rolled back'
            WHEN put_aside THEN 'put aside'
            WHEN waits_for_its_end THEN 'half'
            WHEN on_slave THEN 'on a slave'
            WHEN gone THEN 'LOST'
            WHEN passed AND expression = '*' THEN 'LOST'
            WHEN passed THEN 'filtered'
            ELSE 'waiting' END AS status,
       CASE WHEN consumed_us IS NOT NULL THEN 'the listener was done with it'
            WHEN dead_us IS NOT NULL THEN 'it became a dead letter'
            WHEN last_back_us IS NOT NULL THEN 'it was given back'
            WHEN rolled_back THEN 'its producer rolled the transaction back'
            WHEN put_aside THEN 'its broker gave the transaction up'
            WHEN waits_for_its_end THEN 'it is a half message, and nobody has ended the transaction'
            WHEN on_slave THEN 'its master lost it, and a slave has a copy'
            WHEN gone THEN 'every copy was cut off the commit log'
            WHEN passed THEN 'the group''s offset was committed behind it'
            WHEN never_got THEN 'it is in its queue'
            ELSE 'a listener got it and has not ended' END AS proof,
       CASE WHEN rolled_back THEN rolled_back_us
            WHEN put_aside THEN put_aside_us
            WHEN waits_for_its_end THEN hidden_us
            WHEN gone THEN coalesce(torn_us, halves_torn_us, acknowledged_us)
            WHEN passed THEN committed_us
            ELSE coalesce(consumed_us, dead_us, last_back_us, first_us, stored_us) END AS proof_us,
       coalesce(calls, 0) AS calls,
       greatest(coalesce(successes, 0) - 1, 0) AS duplicates,
       CASE WHEN coalesce(successes, 0) > 1 THEN
            CASE WHEN together.copies > 1 AND commits > 1 THEN 'committed twice: the broker asked about it again'
                 WHEN together.copies > 1 THEN 'stored twice: the producer tried again'
                 WHEN given_back > 0 THEN 'given back: a listener failed or took too long'
                 WHEN consumer != last_consumer AND thawed_us BETWEEN consumed_us AND last_done_us
                 THEN 'a member that hung went on with what it held, though others had consumed it meanwhile'
                 WHEN consumers > 1 THEN 'the queue moved: the new owner began at the committed offset'
                 ELSE 'the consumer began again at the committed offset' END END AS duplicate_reason
FROM together
