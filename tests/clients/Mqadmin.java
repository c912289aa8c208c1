import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.store.OffsetStore;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** Runs commands of mqadmin, a line each with tabs between its words, and answers each by a line: what it printed, in base64.
 *  Words that begin with "!" are for what stands beside mqadmin: a producer and consumers. */
public class Mqadmin {
    static final BlockingQueue<String> CONSUMED = new LinkedBlockingQueue<>();
    static final List<DefaultMQPushConsumer> CONSUMERS = new ArrayList<>();
    static DefaultMQProducer producer;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, "UTF-8"));
        System.setErr(System.out);
        System.setProperty("rocketmq.namesrv.addr", arguments[0]);
        try (Scanner in = new Scanner(System.in, "UTF-8")) {
            while (in.hasNextLine()) {
                String[] words = in.nextLine().split("\t");
                if (words[0].startsWith("!")) {
                    try {
                        beside(words, arguments[0]);
                    } catch (Exception error) {
                        error.printStackTrace();
                    }
                } else {
                    run(words);
                }
                System.out.flush();
                answers.println(Base64.getEncoder().encodeToString(printed.toByteArray()));
                answers.flush();
                printed.reset();
            }
        }
        System.exit(0);
    }

    /** Runs a command; one that has no end is interrupted. */
    static void run(String[] words) throws InterruptedException {
        Thread thread = new Thread(() -> Once.run(words));
        thread.setDaemon(true);
        thread.start();
        for (int turns = 0; turns < 2_000 && thread.isAlive(); turns++) {
            thread.join(10);
            endPause(thread);
        }
        if (thread.isAlive()) {
            System.out.println("It has no end.");
            thread.interrupt();
        }
    }

    /** Some commands can be run once only: each time they are made anew. */
    static class Once extends MQAdminStartup {
        static void run(String[] words) {
            SUB_COMMANDS.clear();
            main0(words, null);
        }
    }

    /** At its end a client waits up to 3 s for a thread that waits for nothing. */
    static void endPause(Thread thread) {
        boolean isEnding = Arrays.stream(thread.getStackTrace())
            .anyMatch(frame -> frame.getMethodName().equals("shutdown") && frame.getClassName().endsWith(".ServiceThread"));
        if (isEnding) {
            Thread.getAllStackTraces().keySet().stream()
                .filter(other -> other.getName().startsWith("NettyEventExecutor"))
                .forEach(Thread::interrupt);
        }
    }

    static void beside(String[] words, String nameServer) throws Exception {
        switch (words[0]) {
            case "!send": send(words[1], words[2], words[3], words[4], words[5], nameServer); break;
            case "!subscribe": subscribe(words[1], words[2], nameServer); break;
            case "!consumed": consumed(Integer.parseInt(words[1])); break;
            case "!commit": commit(); break;
            case "!stop": stop(); break;
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    static void send(String topic, String queue, String tag, String key, String body, String nameServer) throws Exception {
        if (producer == null) {
            producer = new DefaultMQProducer("producers");
            producer.setNamesrvAddr(nameServer);
            producer.setInstanceName("producer");
            producer.setSendMsgTimeout(30_000);
            producer.start();
        }
        Message message = new Message(topic, tag, key, body.getBytes(StandardCharsets.UTF_8));
        SendResult result = producer.send(message, new MessageQueue(topic, "broker-a", Integer.parseInt(queue)));
        System.out.println(result.getMsgId() + " " + result.getOffsetMsgId());
    }

    static void subscribe(String group, String topic, String nameServer) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName("consumer");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPersistConsumerOffsetInterval(1_000_000);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(m -> CONSUMED.add(new String(m.getBody(), StandardCharsets.UTF_8)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        CONSUMERS.add(consumer);
        System.out.println(consumer.buildMQClientId());
    }

    static void consumed(int wanted) throws InterruptedException {
        List<String> bodies = new ArrayList<>();
        String body = "";
        while (bodies.size() < wanted && body != null) {
            body = CONSUMED.poll(30, TimeUnit.SECONDS);
            bodies.add(body == null ? "and no more" : body);
        }
        bodies.sort(null);
        System.out.println(String.join(" ", bodies));
    }

    /** Tells the broker how far the consumers are, when they have done with all that there is; it knows when this returns.
     *  That nothing waits for a retry a consumer knows only when its first poll for one has ended, after 15 s or more. */
    static void commit() throws Exception {
        for (DefaultMQPushConsumer consumer : CONSUMERS) {
            DefaultMQPushConsumerImpl impl = consumer.getDefaultMQPushConsumerImpl();
            Map<MessageQueue, ?> own = impl.getRebalanceImpl().getProcessQueueTable();
            MessageQueue retries = new MessageQueue(MixAll.getRetryTopic(consumer.getConsumerGroup()), "broker-a", 0);
            until("the retries are assigned", () -> own.containsKey(retries));
            OffsetStore offsets = impl.getOffsetStore();
            offsets.updateOffset(retries, consumer.maxOffset(retries), true);
            for (MessageQueue queue : own.keySet()) {
                long end = consumer.maxOffset(queue);
                until(queue + " is read", () -> offsets.readOffset(queue, ReadOffsetType.READ_FROM_MEMORY) >= end);
                impl.persistConsumerOffset();
                until(queue + " is committed", () -> offsets.readOffset(queue, ReadOffsetType.READ_FROM_STORE) >= end);
            }
        }
    }

    static void until(String what, BooleanSupplier isSo) throws InterruptedException {
        for (int tries = 0; !isSo.getAsBoolean(); tries++) {
            if (tries > 3_000) {
                throw new IllegalStateException("not yet: " + what);
            }
            Thread.sleep(10);
        }
    }

    static void stop() {
        CONSUMERS.forEach(DefaultMQPushConsumer::shutdown);
        CONSUMERS.clear();
    }
}
