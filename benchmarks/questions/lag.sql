WITH names AS (
    SELECT DISTINCT world, node, broker_name FROM events WHERE kind = 'BrokerStarted'
), ends AS (
    SELECT e.world, topic, n.broker_name, queue_id, ts_us // 1000000 AS second, max(queue_offset) + 1 AS end_offset
    FROM events e JOIN names n ON e.world = n.world AND e.node = n.node
    WHERE kind = 'MessageDispatched' GROUP BY ALL
), known AS (
    SELECT world, topic, broker_name, queue_id, "group", ts_us // 1000000 AS second,
           arg_max(queue_offset, (ts_us, slice, i)) AS consumed_offset
    FROM events WHERE kind = 'OffsetUpdated' GROUP BY ALL
), committed AS (
    SELECT e.world, topic, n.broker_name, queue_id, "group", ts_us // 1000000 AS second,
           arg_max(queue_offset, (ts_us, slice, i)) AS committed_offset
    FROM events e JOIN names n ON e.world = n.world AND e.node = n.node
    WHERE kind = 'OffsetCommitted' GROUP BY ALL
), groups AS (
    SELECT world, topic, broker_name, queue_id, "group" FROM known
    UNION SELECT world, topic, broker_name, queue_id, "group" FROM committed
), last AS (
    SELECT world, max(ts_us) // 1000000 AS last_second FROM events GROUP BY ALL
), seconds AS (
    SELECT groups.*, unnest(range(0, last_second + 1)) AS second FROM groups JOIN last USING (world)
), filled AS (
    SELECT world, topic, broker_name, queue_id, "group", second,
           last_value(end_offset IGNORE NULLS) OVER so_far AS end_offset,
           last_value(consumed_offset IGNORE NULLS) OVER so_far AS consumed_offset,
           last_value(committed_offset IGNORE NULLS) OVER so_far AS committed_offset
    FROM seconds
    LEFT JOIN ends USING (world, topic, broker_name, queue_id, second)
    LEFT JOIN known USING (world, topic, broker_name, queue_id, "group", second)
    LEFT JOIN committed USING (world, topic, broker_name, queue_id, "group", second)
    WINDOW so_far AS (PARTITION BY world, topic, broker_name, queue_id, "group" ORDER BY second)
)
SELECT *, end_offset - coalesce(consumed_offset, committed_offset, 0) AS lag FROM filled WHERE end_offset IS NOT NULL
