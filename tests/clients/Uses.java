import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/** What applications do with a RocketMQ client, a use by its name: Uses USE NAME_SERVER. It says what happens, a line each,
 *  and lives until its standard input ends. */
public class Uses {
    static final String TOPIC = "Uses";

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static Message message(String body) {
        return message("", body);
    }

    static Message message(String tag, String body) {
        return new Message(TOPIC, tag, "key-" + body, body.getBytes(StandardCharsets.UTF_8));
    }

    static String body(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static <P extends DefaultMQProducer> P started(P producer, String nameServer) throws Exception {
        producer.setNamesrvAddr(nameServer);
        producer.setSendMsgTimeout(10_000);
        producer.start();
        return producer;
    }

    static DefaultMQPushConsumer consumer(String group, String nameServer) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    static void listen(DefaultMQPushConsumer consumer, String name) throws Exception {
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(m -> say(name + " got " + body(m)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
    }

    static void listenInOrder(DefaultMQPushConsumer consumer, String name) throws Exception {
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            messages.forEach(m -> say(name + " got " + body(m)));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
    }

    public static void main(String[] arguments) throws Exception {
        String use = arguments[0];
        String nameServer = arguments[1];
        DefaultMQProducer producer = started(new DefaultMQProducer("producers"), nameServer);
        producer.send(message("first"));
        switch (use) {
            case "send": send(producer); break;
            case "transaction": transaction(nameServer); break;
            case "delay": delay(producer, nameServer); break;
            case "fail": fail(nameServer); break;
            case "order": order(producer, nameServer); break;
            case "broadcast": broadcast(nameServer); break;
            case "tags": tags(producer, nameServer); break;
            case "poll": poll(nameServer); break;
            case "again": again(producer, nameServer); break;
            case "steady": steady(producer); break;
            case "orders": orders(producer, nameServer); break;
            default: throw new IllegalArgumentException(use);
        }
        say("done");
        try (Scanner in = new Scanner(System.in)) {
            while (in.hasNextLine()) {
                in.nextLine();
            }
        }
        System.exit(0);
    }

    static void send(DefaultMQProducer producer) throws Exception {
        say("sync " + producer.send(message("sync")).getSendStatus());
        CountDownLatch latch = new CountDownLatch(1);
        producer.send(message("async"), new SendCallback() {
            public void onSuccess(SendResult result) {
                say("async " + result.getSendStatus());
                latch.countDown();
            }

            public void onException(Throwable error) {
                say("async " + error);
                latch.countDown();
            }
        });
        latch.await();
        producer.sendOneway(message("one-way"));
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            batch.add(message("batch-" + i));
        }
        say("batch " + producer.send(batch).getSendStatus());
        byte[] large = new byte[3_000_000];
        Arrays.fill(large, (byte) 'x');
        say("large " + producer.send(new Message(TOPIC, large)).getSendStatus());
        say("queues " + producer.fetchPublishMessageQueues(TOPIC).size());
    }

    static void transaction(String nameServer) throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer("transactions");
        producer.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object state) {
                return (LocalTransactionState) state;
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                say("asked " + body(message));
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        started(producer, nameServer);
        listen(subscribed("readers", nameServer, "tx"), "reader");
        producer.sendMessageInTransaction(message("tx", "commit"), LocalTransactionState.COMMIT_MESSAGE);
        producer.sendMessageInTransaction(message("tx", "rollback"), LocalTransactionState.ROLLBACK_MESSAGE);
        producer.sendMessageInTransaction(message("tx", "unknown"), LocalTransactionState.UNKNOW);
    }

    static DefaultMQPushConsumer subscribed(String group, String nameServer, String tags) throws Exception {
        DefaultMQPushConsumer consumer = consumer(group, nameServer);
        consumer.subscribe(TOPIC, tags);
        return consumer;
    }

    static void delay(DefaultMQProducer producer, String nameServer) throws Exception {
        listen(subscribed("readers", nameServer, "*"), "reader");
        Message level = message("level");
        level.setDelayTimeLevel(17);
        producer.send(level);
        Message timer = message("timer");
        MessageAccessor.putProperty(timer, "TIMER_DELAY_SEC", "5400");
        say("timer " + producer.send(timer).getSendStatus());
    }

    static void fail(String nameServer) throws Exception {
        DefaultMQPushConsumer consumer = subscribed("failing", nameServer, "*");
        consumer.setMaxReconsumeTimes(2);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(m -> say("try " + m.getReconsumeTimes() + " of " + body(m)));
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
    }

    static void order(DefaultMQProducer producer, String nameServer) throws Exception {
        for (int i = 0; i < 10; i++) {
            producer.send(message("step", "step-" + i), (queues, m, key) -> queues.get(0), null);
        }
        listenInOrder(subscribed("orderly", nameServer, "step"), "in order");
    }

    static void broadcast(String nameServer) throws Exception {
        for (int i = 0; i < 2; i++) {
            DefaultMQPushConsumer consumer = subscribed("everybody", nameServer, "*");
            // The package of MessageModel is another one in 4.x.
            var model = consumer.getMessageModel().getDeclaringClass();
            consumer.setMessageModel(Enum.valueOf(model, "BROADCASTING"));
            consumer.setInstanceName("instance-" + i + "-" + System.nanoTime());
            listen(consumer, "reader-" + i);
        }
    }

    /** Two readers who wish for some: of one queue, so what is not for them would come before the last one, which is. */
    static void tags(DefaultMQProducer producer, String nameServer) throws Exception {
        for (String tag : new String[] {"red", "green", "blue"}) {
            Message message = message(tag, tag);
            message.putUserProperty("n", String.valueOf(tag.length()));
            producer.send(message, (queues, m, key) -> queues.get(0), null);
        }
        listenInOrder(subscribed("tags", nameServer, "red || blue"), "by tag");
        DefaultMQPushConsumer consumer = consumer("sql", nameServer);
        consumer.subscribe(TOPIC, MessageSelector.bySql("n > 3"));
        listenInOrder(consumer, "by sql");
    }

    static void poll(String nameServer) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer("polling");
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, "*");
        consumer.start();
        for (int i = 0; i < 20; i++) {
            List<MessageExt> polled = consumer.poll(1000);
            polled.forEach(m -> say("polled " + body(m)));
            if (!polled.isEmpty()) {
                break;
            }
        }
    }

    /** Sends on and on, until a line comes; each send that fails is said. */
    static void steady(DefaultMQProducer producer) throws Exception {
        int sent = 0;
        while (System.in.available() == 0) {
            try {
                producer.send(message("steady-" + sent));
                if (++sent % 100 == 0) {
                    say("sending " + sent);
                }
            } catch (Exception error) {
                say("failed " + error);
            }
            Thread.sleep(5);
        }
        say("sent " + sent);
    }

    /** Sends until a send fails, and then until one succeeds again. */
    static void again(DefaultMQProducer producer, String nameServer) throws Exception {
        producer.setRetryTimesWhenSendFailed(0);
        say("sending");
        boolean failed = false;
        for (int i = 0; ; i++) {
            try {
                producer.send(message("again-" + i), 1000);
                if (failed) {
                    say("sent again");
                    return;
                }
            } catch (Exception error) {
                if (!failed) {
                    say("failed");
                }
                failed = true;
            }
        }
    }

    /** Sends an order every three seconds while somebody listens; what fails is told, and not sent again. */
    static void orders(DefaultMQProducer producer, String nameServer) throws Exception {
        listen(subscribed("readers", nameServer, "*"), "reader");
        for (int i = 0; ; i++) {
            try {
                producer.send(message("order-" + i), 3_000);
                say("order " + i + ": sent");
            } catch (Exception error) {
                say("order " + i + ": " + error.getClass().getSimpleName());
            }
            Thread.sleep(3_000);
        }
    }
}
