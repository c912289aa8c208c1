WITH counted AS (
    SELECT world, topic, 'sent' AS what, sent_us AS at_us FROM messages
    UNION ALL SELECT world, topic, 'acknowledged', acknowledged_us FROM messages
    UNION ALL SELECT world, topic, 'stored', stored_us FROM messages
    UNION ALL SELECT world, topic, 'consumed', consumed_us FROM deliveries JOIN messages USING (world, msg_id)
)
SELECT world, topic, at_us // 1000000 AS second,
       count(*) FILTER (what = 'sent') AS sent,
       count(*) FILTER (what = 'acknowledged') AS acknowledged,
       count(*) FILTER (what = 'stored') AS stored,
       count(*) FILTER (what = 'consumed') AS consumed
FROM counted
WHERE at_us IS NOT NULL
GROUP BY ALL
