WITH wants AS (
    SELECT world, "group", topic, list(DISTINCT expression) FILTER (expression != '*') AS expressions
    FROM events WHERE kind = 'SubscriptionChanged' AND expression != '' AND NOT starts_with(topic, '%RETRY%')
    GROUP BY ALL
), words AS (
    SELECT world, "group", topic, expression, trim(unnest(string_split(expression, '||'))) AS word
    FROM (SELECT world, "group", topic, unnest(expressions) AS expression FROM wants)
), hashed AS (
    SELECT world, "group", topic, expression,
           list_reduce(list_transform(string_split(word, ''), lambda c: unicode(c)::BIGINT),
                       lambda value, unit: (value * 31 + unit) % 4294967296, 0::BIGINT) AS hash
    FROM words WHERE word != ''
), wished AS (
    SELECT world, "group", topic, expression,
           list(if(hash >= 2147483648, hash - 4294967296, hash)) AS codes FROM hashed GROUP BY ALL
), conditions AS (
    SELECT DISTINCT world, "group", topic, true AS by_sql FROM events WHERE kind = 'ConsumerFilterChanged'
), tags AS (
    SELECT world, node AS broker, topic, queue_id, queue_offset, list(DISTINCT tags_code) AS tags
    FROM events SEMI JOIN (SELECT world, topic FROM wants WHERE len(expressions) > 0) USING (world, topic)
    WHERE kind = 'MessageDispatched' GROUP BY ALL
), held_back AS (
    SELECT DISTINCT world, node AS broker, "group", topic, queue_id,
           unnest(range(queue_offset, next_offset)) AS queue_offset, true AS held_back
    FROM events WHERE kind = 'MessagesFilteredByBroker'
), wanted AS (
    SELECT DISTINCT world, node AS broker, topic, queue_id, queue_offset, unnest(string_split(groups, ',')) AS "group"
    FROM events WHERE kind = 'FilterBitMapCalculated'
), dropped AS (
    SELECT DISTINCT d.world, b.node AS broker, "group", topic, queue_id, true AS dropped
    FROM events d JOIN (SELECT world, broker_name, node FROM events WHERE kind = 'BrokerStarted') b
      USING (world, broker_name)
    WHERE d.kind = 'MessagesFiltered'
), popped_away AS (
    SELECT DISTINCT world, "group", msg_id, true AS popped_away
    FROM events WHERE kind = 'AckRequested' AND reason = 'filtered'
), brokers AS (
    SELECT DISTINCT world, broker_name, broker_id, node FROM events WHERE kind = 'BrokerStarted'
), pairs AS (
    SELECT DISTINCT s.world, s.node AS slave, m.node AS master
    FROM brokers s JOIN brokers m USING (world, broker_name) WHERE s.broker_id > 0 AND m.broker_id = 0
), by_hand AS (
    SELECT DISTINCT p.world, coalesce(master, p.node) AS broker, "group", topic, queue_id,
           unnest(range(queue_offset, next_offset)) AS queue_offset, true AS by_hand
    FROM (SELECT world, node, "group", topic, queue_id, queue_offset, next_offset FROM events
          WHERE kind = 'PullAnswered' AND messages > 0) p
    ANTI JOIN (SELECT world, "group" FROM deliveries WHERE calls > 0 OR successes > 0) USING (world, "group")
    LEFT JOIN pairs s ON s.world = p.world AND s.slave = p.node
), misfits AS (
    SELECT e.world, e."group", e.topic, broker, queue_id, queue_offset, true AS misfits
    FROM tags JOIN wished e USING (world, topic) WHERE NOT list_has_any(codes, tags.tags)
    GROUP BY ALL
), expected AS (
    SELECT * FROM messages JOIN wants USING (world, topic) WHERE acknowledged_us IS NOT NULL
), ends AS (
    SELECT world, node, commit_log_max_offset, ts_us AS recovered_us FROM events WHERE kind = 'StoreRecovered'
), copies AS (
    SELECT s.world, s.node, topic, unique_key AS msg_id, commit_log_offset, store_size, ts_us, slice, i,
           min(recovered_us) AS torn_us
    FROM (SELECT * FROM events WHERE kind = 'MessageStored') s
    LEFT JOIN (SELECT world, node, commit_log_max_offset AS log_end, recovered_us FROM ends) e
        ON e.world = s.world AND e.node = s.node AND recovered_us > ts_us AND commit_log_offset >= log_end
    GROUP BY ALL
), torn AS (
    SELECT world, node, topic, msg_id, commit_log_offset, min(torn_us) AS torn_us, min(ts_us) AS stored_us,
           max(store_size) AS store_size
    FROM copies WHERE torn_us IS NOT NULL GROUP BY ALL
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
    FROM copies LEFT JOIN on_slaves USING (world, node, topic, msg_id, commit_log_offset)
    GROUP BY ALL
), parked AS (
    SELECT world, msg_id, sum("left") AS parked, max(torn_us) AS parked_torn_us
    FROM surviving WHERE topic IN ('SCHEDULE_TOPIC_XXXX', 'rmq_sys_wheel_timer') GROUP BY ALL
), copies_of_halves AS (
    SELECT world, msg_id, count(*) FILTER (torn_us IS NULL) AS halves, max(torn_us) AS halves_torn_us
    FROM copies WHERE topic = 'RMQ_SYS_TRANS_HALF_TOPIC' GROUP BY ALL
), ends_of_halves AS (
    SELECT world, unique_key AS msg_id,
           min(ts_us) FILTER (kind = 'HalfMessageHidden' AND status IN (
               'PUT_OK', 'FLUSH_DISK_TIMEOUT', 'FLUSH_SLAVE_TIMEOUT', 'SLAVE_NOT_AVAILABLE')) AS hidden_us,
           count(*) FILTER (kind = 'TransactionEnded' AND code = 0 AND local_state = 'COMMIT_MESSAGE') AS commits,
           min(ts_us) FILTER (kind = 'TransactionEnded' AND code = 0 AND local_state = 'ROLLBACK_MESSAGE')
               AS rolled_back_us,
           min(ts_us) FILTER (kind = 'HalfMessageGivenUp') AS put_aside_us
    FROM events WHERE kind IN ('HalfMessageHidden', 'TransactionEnded', 'HalfMessageGivenUp')
    GROUP BY ALL
), halves AS (
    SELECT world, msg_id, hidden_us, commits, rolled_back_us, put_aside_us, halves_torn_us,
           coalesce(halves, 0) AS halves
    FROM ends_of_halves LEFT JOIN copies_of_halves USING (world, msg_id) WHERE hidden_us IS NOT NULL
), passed_over AS (
    SELECT world, node AS broker, "group", topic, queue_id, queue_offset AS committed_offset, ts_us AS committed_us
    FROM events WHERE kind = 'OffsetCommitted'
    QUALIFY row_number() OVER (
        PARTITION BY world, node, "group", topic, queue_id ORDER BY ts_us DESC, slice DESC, i DESC
    ) = 1
), woken AS (
    SELECT world, target AS last_consumer, max(ts_us) AS thawed_us FROM events WHERE kind = 'NodeThawed' GROUP BY ALL
), together AS (
    SELECT *, first_us IS NULL AND consumed_us IS NULL AS never_got,
           never_got AND coalesce(committed_offset > queue_offset, false) AS passed,
           never_got AND coalesce("left", 0) = 0 AS gone, gone AND coalesce(on_slaves, 0) > 0 AS on_slave,
           gone AND NOT on_slave AND hidden_us IS NOT NULL AS is_half,
           is_half AND commits = 0 AND rolled_back_us IS NOT NULL AS rolled_back,
           is_half AND commits = 0 AND put_aside_us IS NOT NULL AS put_aside,
           is_half AND halves > 0 AS waits_for_its_end,
           gone AND "left" IS NULL AND coalesce(parked, 0) > 0 AS is_parked,
           coalesce(surviving.torn_us, halves_torn_us, parked_torn_us) AS cut_us,
           coalesce(len(expressions), 0) > 0 AS is_narrow,
           CASE WHEN by_sql THEN
                     CASE WHEN held_back AND NOT EXISTS (
                         FROM wanted w WHERE w.world = expected.world AND w.broker = expected.broker
                            AND w.topic = expected.topic AND w.queue_id = expected.queue_id
                            AND w.queue_offset = expected.queue_offset AND w."group" = expected."group"
                     ) THEN 'the broker held it back, by the group''s condition' END
                WHEN popped_away THEN 'a consumer dropped it: its tag only has the code of a wanted one'
                WHEN misfits THEN 'its tag is none of those that the group wants'
                WHEN is_narrow AND dropped THEN 'consumers dropped what only has the code of a wanted tag'
           END AS not_wanted,
           coalesce(successes, 0) > 1 AS again
    FROM expected
    LEFT JOIN deliveries USING (world, msg_id, "group")
    LEFT JOIN surviving USING (world, msg_id, topic)
    LEFT JOIN parked USING (world, msg_id)
    LEFT JOIN halves USING (world, msg_id)
    LEFT JOIN passed_over USING (world, broker, "group", topic, queue_id)
    LEFT JOIN woken USING (world, last_consumer)
    LEFT JOIN conditions USING (world, "group", topic)
    LEFT JOIN tags USING (world, broker, topic, queue_id, queue_offset)
    LEFT JOIN misfits USING (world, "group", topic, broker, queue_id, queue_offset)
    LEFT JOIN held_back USING (world, broker, "group", topic, queue_id, queue_offset)
    LEFT JOIN dropped USING (world, broker, "group", topic, queue_id)
    LEFT JOIN popped_away USING (world, "group", msg_id)
    LEFT JOIN by_hand USING (world, broker, "group", topic, queue_id, queue_offset)
), judged AS (
SELECT world, "group", topic, msg_id, broker, queue_id, queue_offset, acknowledged_us,
       CASE WHEN consumed_us IS NOT NULL THEN 'consumed'
            WHEN dead_us IS NOT NULL THEN 'dead'
            WHEN last_back_us IS NOT NULL THEN 'in retry'
            WHEN rolled_back THEN 'rolled back'
            WHEN put_aside THEN 'put aside'
            WHEN waits_for_its_end THEN 'half'
            WHEN on_slave THEN 'on a slave'
            WHEN is_parked THEN 'waiting'
            WHEN gone THEN 'LOST'
            WHEN passed AND by_hand THEN 'pulled'
            WHEN passed AND not_wanted IS NULL THEN 'LOST'
            WHEN passed THEN 'filtered'
            ELSE 'waiting' END AS status,
       CASE WHEN consumed_us IS NOT NULL THEN 'the listener was done with it'
            WHEN dead_us IS NOT NULL THEN 'it became a dead letter'
            WHEN last_back_us IS NOT NULL THEN 'it was given back'
            WHEN rolled_back THEN 'its producer rolled the transaction back'
            WHEN put_aside THEN 'its broker gave the transaction up'
            WHEN waits_for_its_end THEN 'it is a half message, and nobody has ended the transaction'
            WHEN on_slave THEN 'its master lost it, and a slave has a copy'
            WHEN is_parked THEN 'it is parked until it is due'
            WHEN gone AND cut_us IS NOT NULL THEN 'every copy was cut off the commit log'
            WHEN gone THEN 'it was acknowledged, and no event says that it was stored'
            WHEN passed AND by_hand THEN 'a pull brought it, and the group has no listener that tells more'
            WHEN passed AND not_wanted IS NOT NULL THEN not_wanted
            WHEN passed AND by_sql THEN 'no broker held it back, and the group''s offset was committed behind it'
            WHEN passed AND is_narrow AND tags IS NOT NULL
            THEN 'its tag fits, and the group''s offset was committed behind it'
            WHEN passed THEN 'the group''s offset was committed behind it'
            WHEN never_got THEN 'it is in its queue'
            ELSE 'a listener got it and has not ended' END AS proof,
       CASE WHEN rolled_back THEN rolled_back_us
            WHEN put_aside THEN put_aside_us
            WHEN waits_for_its_end THEN hidden_us
            WHEN gone THEN coalesce(CASE WHEN NOT is_parked THEN cut_us END, acknowledged_us)
            WHEN passed THEN committed_us
            ELSE coalesce(consumed_us, dead_us, last_back_us, first_us, stored_us) END AS proof_us,
       coalesce(calls, 0) AS calls,
       greatest(coalesce(successes, 0) - 1, 0) AS duplicates,
       CASE WHEN again THEN
            CASE WHEN together.copies > 1 AND commits > 1 THEN 'committed twice: the broker asked about it again'
                 WHEN together.copies > 1 THEN 'stored twice: the producer tried again'
                 WHEN given_back > 0 THEN 'given back: a listener failed or took too long'
                 WHEN consumer != last_consumer AND thawed_us BETWEEN consumed_us AND last_done_us
                 THEN 'a member that hung went on with what it held, though others had consumed it meanwhile'
                 WHEN consumers > 1 THEN 'the queue moved: the new owner began at the committed offset'
                 ELSE 'the consumer began again at the committed offset' END END AS duplicate_reason,
       [broker, producer, consumer, last_consumer] AS machines,
       CASE WHEN again THEN last_done_us WHEN status != 'consumed' THEN proof_us END AS until_us
FROM together
), faults AS (
    SELECT world, ts_us AS fault_us, concat_ws(' ', kind, source || ' to', target) AS fault,
           unnest([source, target]) AS machine
    FROM events WHERE kind IN ('NodeCrashed', 'PowerLost', 'NodeFrozen', 'LinkCut', 'LinkDelayed', 'DiskHung',
                               'DiskSlowed', 'ClockDrifted')
), touched AS (
    SELECT world, "group", topic, msg_id, max((f.fault_us, f.fault)) AS last
    FROM judged JOIN faults f USING (world)
    WHERE list_contains(machines, machine) AND f.fault_us <= until_us GROUP BY ALL
)
SELECT judged.*, last[2] AS fault, last[1] AS fault_us
FROM judged LEFT JOIN touched USING (world, "group", topic, msg_id)
