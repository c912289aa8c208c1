WITH ahead AS (
    SELECT world, other AS consumer, node AS broker, offset_us AS ahead_us FROM clocks WHERE disagrees
    UNION ALL
    SELECT world, node, other, -offset_us FROM clocks WHERE disagrees
), done AS (
    SELECT *, consumed_us - coalesce(ahead_us, 0) AS broker_us FROM deliveries d
    JOIN (SELECT world, msg_id, topic, broker, queue_id, queue_offset, copies FROM messages) USING (world, msg_id)
    LEFT JOIN ahead USING (world, consumer, broker)
    WHERE consumed_us IS NOT NULL AND broker IS NOT NULL
), told AS (
    SELECT *, max((queue_offset, msg_id, consumed_us)) OVER (
        PARTITION BY world, "group", topic, broker, queue_id ORDER BY broker_us
        RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS later
    FROM done
), locked AS (
    SELECT DISTINCT world, "group", true AS in_order FROM events WHERE kind = 'QueueLockTaken'
)
SELECT world, "group", topic, broker, queue_id, queue_offset, msg_id, consumed_us, consumer AS node, first_us,
       later[1] AS later_offset, later[2] AS later_msg_id, later[3] AS later_us, coalesce(in_order, false) AS in_order,
       CASE WHEN given_back > 0 THEN 'given back: it came again by the retry queue, and later ones went on'
            WHEN copies > 1 THEN 'stored twice: the place of its first copy counts'
            WHEN calls > 1
            THEN 'the first call did not end well, as when a member dies, and later ones went on'
            WHEN first_us > later[3] THEN 'it was called after the later one had ended'
            ELSE 'several threads of a listener: the later one ended first' END AS reason
FROM told LEFT JOIN locked USING (world, "group")
WHERE later[1] > queue_offset
