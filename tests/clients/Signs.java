import java.nio.charset.StandardCharsets;
import java.util.Scanner;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.RPCHook;

/** A client that signs its requests, one with a wrong secret, and one that does not sign: Signs NAME_SERVER. It says what
 *  happens, a line each, and lives until its standard input ends. */
public class Signs {
    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static RPCHook signing(String secret) {
        return new AclClientRPCHook(new SessionCredentials("orders", secret));
    }

    static void send(String name, String nameServer, RPCHook hook, String topic) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("producers-" + name, hook);
        producer.setNamesrvAddr(nameServer);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        try {
            say(name + " " + producer.send(new Message(topic, name.getBytes(StandardCharsets.UTF_8))).getSendStatus());
        } catch (MQClientException refused) {
            say(name + " " + refused.getResponseCode());
        }
        producer.shutdown();
    }

    public static void main(String[] arguments) throws Exception {
        String nameServer = arguments[0];
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("readers", signing("secret"));
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("T", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(m -> say("got " + new String(m.getBody(), StandardCharsets.UTF_8)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        send("signed", nameServer, signing("secret"), "T");
        send("elsewhere", nameServer, signing("secret"), "U");
        send("wrong", nameServer, signing("wrong"), "T");
        send("unsigned", nameServer, null, "T");
        say("done");
        new Scanner(System.in).hasNextLine();
    }
}
