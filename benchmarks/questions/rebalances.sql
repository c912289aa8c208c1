WITH taken AS (
    SELECT world, "group", topic, broker_name, queue_id, node, ts_us, slice, i, 1 AS takes
    FROM events WHERE kind = 'QueueAllocated'
), dropped AS (
    SELECT world, "group", topic, broker_name, queue_id, node, ts_us, slice, i, 0 AS takes
    FROM events WHERE kind = 'QueueDropped'
), ended AS (
    SELECT world, target AS node, ts_us, slice, i FROM events WHERE kind IN ('NodeCrashed', 'PowerLost')
    UNION ALL SELECT world, node, ts_us, slice, i FROM events WHERE kind = 'ClientStopped'
), gone AS (
    SELECT world, "group", topic, broker_name, queue_id, node, ts_us, slice, i, 0 AS takes
    FROM (SELECT DISTINCT world, "group", topic, broker_name, queue_id, node FROM taken) JOIN ended USING (world, node)
), changes AS (
    SELECT *, lead(ts_us) OVER (
        PARTITION BY world, "group", topic, broker_name, queue_id, node ORDER BY ts_us, slice, i
    ) AS to_us
    FROM (FROM taken UNION ALL FROM dropped UNION ALL FROM gone)
), owners AS (
    SELECT DISTINCT world, "group", topic, broker_name, queue_id, node, ts_us AS from_us, to_us
    FROM changes WHERE takes = 1
), began AS (
    SELECT DISTINCT world, "group", topic, broker_name, queue_id, node, ts_us AS from_us, queue_offset
    FROM events WHERE kind = 'QueueAllocated'
), held AS (
    SELECT *, lag((node, to_us)) OVER (
        PARTITION BY world, "group", topic, broker_name, queue_id ORDER BY from_us, node
    ) AS earlier
    FROM owners JOIN began USING (world, "group", topic, broker_name, queue_id, node, from_us)
), first AS (
    SELECT h.world, h."group", h.topic, h.broker_name, h.queue_id, h.node, h.from_us, min(c.ts_us) AS listened_us
    FROM held h JOIN events c USING (world, "group", topic, broker_name, queue_id, node)
    WHERE c.kind = 'ConsumeStarted' AND c.reconsume_times = 0
      AND c.ts_us >= h.from_us AND (h.to_us IS NULL OR c.ts_us <= h.to_us)
    GROUP BY ALL
)
SELECT world, "group", topic, broker_name, queue_id, node, from_us AS taken_us, queue_offset AS from_offset,
       listened_us, to_us AS left_us, earlier[1] AS before,
       CASE WHEN from_us - earlier[2] > 0 THEN from_us - earlier[2] END AS gap_us,
       CASE WHEN from_us - earlier[2] < 0 THEN earlier[2] - from_us END AS overlap_us
FROM held LEFT JOIN first USING (world, "group", topic, broker_name, queue_id, node, from_us)
