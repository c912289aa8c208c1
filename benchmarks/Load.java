import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/** Load NAME_SERVER THREADS MESSAGES: one producer, whose threads send messages of 1 KB, each waiting for its answers. The
 *  first half warms up; how many of the second half are answered in a second is printed. */
public class Load {
    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[1]);
        long messages = Long.parseLong(arguments[2]);
        DefaultMQProducer producer = new DefaultMQProducer("load");
        producer.setNamesrvAddr(arguments[0]);
        producer.setSendMsgTimeout(60_000);
        producer.start();
        send(producer, threads, messages / 2);
        long began = System.nanoTime();
        send(producer, threads, messages - messages / 2);
        System.out.println((messages - messages / 2) * 1e9 / (System.nanoTime() - began));
        producer.shutdown();
    }

    static void send(DefaultMQProducer producer, int threads, long messages) throws Exception {
        AtomicLong left = new AtomicLong(messages);
        CountDownLatch ended = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            new Thread(() -> {
                try {
                    while (left.decrementAndGet() >= 0) {
                        producer.send(new Message("Load", new byte[1024]));
                    }
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
                ended.countDown();
            }).start();
        }
        ended.await();
    }
}
