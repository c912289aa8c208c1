WITH trips AS (
    SELECT world, least(caller, server) AS node, greatest(caller, server) AS other,
           returned_us - sent_us - (answered_us - received_us) AS trip_us,
           floor(CASE WHEN caller < server THEN 1 ELSE -1 END
                 * (received_us - sent_us + answered_us - returned_us) / 2)::BIGINT AS offset_us
    FROM requests
    WHERE returned_us IS NOT NULL AND answered_us IS NOT NULL AND received_us IS NOT NULL AND caller != server
), best AS (
    SELECT world, node, other, min((trip_us, offset_us)) AS best, count(*) AS round_trips
    FROM trips WHERE trip_us >= 0 GROUP BY ALL
), pairs AS (
    SELECT world, node, other, best[2] AS offset_us, ceil(best[1] / 2)::BIGINT AS uncertainty_us, round_trips,
           abs(offset_us) > uncertainty_us AS disagrees
    FROM best
), shares AS (
    SELECT world, machine, avg(disagrees::INT) AS share
    FROM (SELECT world, unnest([node, other]) AS machine, disagrees FROM pairs) GROUP BY ALL
)
SELECT p.*, CASE WHEN disagrees AND n.share > o.share THEN p.node
                 WHEN disagrees AND o.share > n.share THEN p.other END AS odd
FROM pairs p
JOIN shares n ON n.world = p.world AND n.machine = p.node
JOIN shares o ON o.world = p.world AND o.machine = p.other
