WITH wanted AS (
    SELECT world, "group", topic, arg_max(expression, (ts_us, slice, i)) AS expression
    FROM events WHERE kind = 'SubscriptionChanged' AND expression != '' GROUP BY ALL
), pulled AS (
    SELECT world, "group", topic, node, queue_id, queue_offset, next_offset, count(*) AS pulls,
           count(*) FILTER (messages = 0) AS empty_pulls, sum(next_offset - queue_offset) AS read,
           sum(messages) AS given, sum(size) AS bytes
    FROM events WHERE kind = 'PullAnswered' AND status IN ('FOUND', 'NO_MATCHED_MESSAGE') GROUP BY ALL
), judged AS (
    SELECT world, "group", topic, node, queue_id, queue_offset, next_offset, sum(by_bit_map) AS by_bit_map,
           sum(by_expression) AS by_expression, sum(not_judged) AS not_judged
    FROM events WHERE kind = 'MessagesFilteredByBroker' GROUP BY ALL
), dropped AS (
    SELECT world, "group", topic, sum(messages)::BIGINT AS by_client
    FROM events WHERE kind = 'MessagesFiltered' GROUP BY ALL
), summed AS (
    SELECT world, "group", topic, sum(pulls)::BIGINT AS pulls, sum(empty_pulls)::BIGINT AS empty_pulls,
           sum(read)::BIGINT AS read, sum(given)::BIGINT AS given, sum(bytes)::BIGINT AS bytes,
           coalesce(sum(by_bit_map), 0)::BIGINT AS by_bit_map, coalesce(sum(by_expression), 0)::BIGINT AS by_expression,
           coalesce(sum(not_judged), 0)::BIGINT AS not_judged
    FROM pulled LEFT JOIN judged USING (world, "group", topic, node, queue_id, queue_offset, next_offset) GROUP BY ALL
)
SELECT s.*, expression, coalesce(by_client, 0) AS by_client, read - given - by_bit_map - by_expression AS by_tag_hash,
       given - coalesce(by_client, 0) AS taken,
       CASE WHEN given > coalesce(by_client, 0) THEN round(bytes / (given - coalesce(by_client, 0)), 3) END
           AS bytes_per_taken
FROM summed s LEFT JOIN wanted USING (world, "group", topic) LEFT JOIN dropped USING (world, "group", topic)
