WITH refused AS (
    SELECT *, CASE WHEN ts_us - lag(ts_us) OVER in_order <= 1000000 THEN 0 ELSE 1 END AS begins
    FROM events WHERE kind = 'FlowControlled'
    WINDOW in_order AS (PARTITION BY world, node, "group", topic, broker_name, queue_id ORDER BY ts_us, slice, i)
), numbered AS (
    SELECT *, sum(begins) OVER in_order AS episode FROM refused
    WINDOW in_order AS (PARTITION BY world, node, "group", topic, broker_name, queue_id ORDER BY ts_us, slice, i)
)
SELECT world, node, "group", topic, broker_name, queue_id,
       min(ts_us) AS began_us, max(ts_us) AS ended_us, count(*) AS refusals, arg_min(reason, ts_us) AS reason,
       max(cached) AS most_cached, max("limit") AS "limit"
FROM numbered
GROUP BY world, node, "group", topic, broker_name, queue_id, episode
