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
), held AS (
    SELECT world, "group", topic, broker_name, queue_id, node, ts_us AS from_us, coalesce(to_us, end_us) AS to_us
    FROM changes JOIN (SELECT world, end_us FROM worlds) USING (world) WHERE takes = 1
)
SELECT world, "group", topic, broker_name, queue_id, a.node, b.node AS other,
       greatest(a.from_us, b.from_us) AS began_us, least(a.to_us, b.to_us) AS ended_us
FROM held a JOIN held b USING (world, "group", topic, broker_name, queue_id)
WHERE a.node < b.node AND a.from_us < b.to_us AND b.from_us < a.to_us
