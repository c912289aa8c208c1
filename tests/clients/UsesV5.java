import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.MessageListener;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** What applications do with RocketMQ's Java client of 5.x, which speaks TLS unless it is told not to: UsesV5 USE ENDPOINTS.
 *  It says what happens, a line each, and lives until its standard input ends. */
public class UsesV5 {
    static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    static final FilterExpression ALL = new FilterExpression();
    static ClientConfiguration configuration;

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static MessageBuilder message(String topic, String body) {
        return PROVIDER.newMessageBuilder().setTopic(topic).setKeys("key-" + body)
            .setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    static String body(MessageView message) {
        return StandardCharsets.UTF_8.decode(message.getBody()).toString();
    }

    /** Receives and acknowledges until so many have come. */
    static void receive(String topic, int wanted, FilterExpression expression) throws Exception {
        SimpleConsumer consumer = PROVIDER.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup("simple-" + topic)
            .setSubscriptionExpressions(Map.of(topic, expression))
            .setAwaitDuration(Duration.ofSeconds(5))
            .build();
        while (wanted > 0) {
            for (MessageView received : consumer.receive(8, Duration.ofSeconds(20))) {
                // First this: time may jump as soon as it is said, beyond the time for which it is hidden.
                consumer.ack(received);
                say("received " + body(received));
                wanted--;
            }
        }
    }

    static void push(String group, String topic, MessageListener listener) throws Exception {
        PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup(group)
            .setSubscriptionExpressions(Map.of(topic, ALL))
            .setMessageListener(message -> {
                say("consumed " + body(message) + " at attempt " + message.getDeliveryAttempt());
                return listener.consume(message);
            })
            .build();
    }

    public static void main(String[] arguments) throws Exception {
        configuration = ClientConfiguration.newBuilder().setEndpoints(arguments[1]).build();
        Producer producer = PROVIDER.newProducerBuilder()
            .setClientConfiguration(configuration)
            .setTopics("T", "F", "D", "X")
            .setTransactionChecker(message -> {
                say("asked " + body(message));
                return TransactionResolution.COMMIT;
            })
            .build();
        switch (arguments[0]) {
            case "send": send(producer); break;
            case "order": order(producer); break;
            case "delay": delay(producer); break;
            case "recall": recall(producer); break;
            case "transaction": transaction(producer); break;
            case "push": push(producer); break;
            case "in_order": inOrder(producer); break;
            case "fail": fail(producer); break;
            case "condition": condition(producer); break;
            default: throw new IllegalArgumentException(arguments[0]);
        }
        say("done");
        try (Scanner in = new Scanner(System.in)) {
            while (in.hasNextLine()) {
                in.nextLine();
            }
        }
        System.exit(0);
    }

    static String sent(SendReceipt receipt) {
        return receipt.getMessageId().toString().isEmpty() ? "without an id" : "sent";
    }

    static void send(Producer producer) throws Exception {
        say("sync " + sent(producer.send(message("T", "sync").setTag("a").build())));
        say("async " + sent(producer.sendAsync(message("T", "async").setTag("b").build()).get()));
        receive("T", 1, new FilterExpression("b"));
    }

    static void condition(Producer producer) throws Exception {
        for (int n : new int[] {1, 5}) {
            producer.send(message("T", "n=" + n).addProperty("n", String.valueOf(n)).build());
        }
        receive("T", 1, new FilterExpression("n > 3", FilterExpressionType.SQL92));
    }

    static void steps(Producer producer) throws Exception {
        for (int i = 0; i < 5; i++) {
            producer.send(message("F", "step-" + i).setMessageGroup("g").build());
        }
    }

    static void order(Producer producer) throws Exception {
        steps(producer);
        receive("F", 5, ALL);
    }

    static void inOrder(Producer producer) throws Exception {
        steps(producer);
        push("orderly", "F", message -> ConsumeResult.SUCCESS);
    }

    static Message inAnHour(String body) {
        return message("D", body).setDeliveryTimestamp(System.currentTimeMillis() + 3_600_000).build();
    }

    static void delay(Producer producer) throws Exception {
        producer.send(inAnHour("in an hour"));
        say("sent");
        receive("D", 1, ALL);
    }

    static void recall(Producer producer) throws Exception {
        SendReceipt receipt = producer.send(inAnHour("recalled"));
        producer.recallMessage("D", receipt.getRecallHandle());
        producer.send(inAnHour("kept"));
        say("sent");
        receive("D", 1, ALL);
    }

    static void transaction(Producer producer) throws Exception {
        for (String end : new String[] {"commit", "rollback", "leave"}) {
            Transaction transaction = producer.beginTransaction();
            producer.send(message("X", end).build(), transaction);
            if (end.equals("commit")) {
                transaction.commit();
            } else if (end.equals("rollback")) {
                transaction.rollback();
            }
        }
        say("sent");
        receive("X", 2, ALL);
    }

    static void push(Producer producer) throws Exception {
        Set<String> failed = new HashSet<>();
        producer.send(message("T", "pushed").build());
        push("push", "T", message -> failed.add(body(message)) ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS);
    }

    static void fail(Producer producer) throws Exception {
        producer.send(message("T", "failing").build());
        push("failing", "T", message -> ConsumeResult.FAILURE);
    }
}
