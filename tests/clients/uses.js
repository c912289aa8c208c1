// What applications do with Apache RocketMQ's own Node.js client: node uses.js USE ENDPOINTS.
// It says what happens, a line each, and lives until its standard input ends.

const { ConsumeResult, FilterExpression, Producer, PushConsumer, SimpleConsumer } = require('rocketmq-client-nodejs');
const { FilterType, TransactionResolution } = require(
  'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb');

const [use, endpoints] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${line}\n`);
const body = (message) => message.body.toString();
const message = (topic, text, settings) => ({ topic, body: Buffer.from(text), keys: [`key-${text}`], ...settings });
const sent = (receipt) => (receipt.messageId ? 'sent' : 'without an id');
const inAnHour = (text) => message('D', text, { delay: 3600000 });

// Receive and acknowledge until so many have come.
async function receive(topic, wanted, expression = '*') {
  const consumer = new SimpleConsumer({
    endpoints, consumerGroup: `simple-${topic}`, subscriptions: new Map([[topic, expression]]), awaitDuration: 5000,
  });
  await consumer.startup();
  while (wanted > 0) {
    for (const received of await consumer.receive(8, 20000)) {
      // First this: time may jump as soon as it is said, beyond the time for which it is hidden.
      await consumer.ack(received);
      say(`received ${body(received)}`);
      wanted -= 1;
    }
  }
}

async function push(consumerGroup, topic, answer) {
  const consume = (received) => {
    say(`consumed ${body(received)} at attempt ${received.deliveryAttempt}`);
    return answer(received);
  };
  const subscriptions = new Map([[topic, '*']]);
  await new PushConsumer({ endpoints, consumerGroup, subscriptions, messageListener: { consume } }).startup();
}

async function steps(producer) {
  for (let i = 0; i < 5; i++) {
    await producer.send(message('F', `step-${i}`, { messageGroup: 'g' }));
  }
}

const uses = {
  async send(producer) {
    say(`sync ${sent(await producer.send(message('T', 'sync', { tag: 'a' })))}`);
    const sending = producer.send(message('T', 'async', { tag: 'b' }));
    say(`async ${sent(await sending)}`);
    await receive('T', 1, 'b');
  },
  async condition(producer) {
    for (const n of ['1', '5']) {
      await producer.send(message('T', `n=${n}`, { properties: new Map([['n', n]]) }));
    }
    await receive('T', 1, new FilterExpression('n > 3', FilterType.SQL));
  },
  async order(producer) {
    await steps(producer);
    await receive('F', 5);
  },
  async in_order(producer) {
    await steps(producer);
    await push('orderly', 'F', () => ConsumeResult.SUCCESS);
  },
  async delay(producer) {
    await producer.send(inAnHour('in an hour'));
    say('sent');
    await receive('D', 1);
  },
  async recall(producer) {
    await producer.recallMessage('D', (await producer.send(inAnHour('recalled'))).recallHandle);
    await producer.send(inAnHour('kept'));
    say('sent');
    await receive('D', 1);
  },
  async transaction(producer) {
    for (const end of ['commit', 'rollback', 'leave']) {
      const transaction = producer.beginTransaction();
      await producer.send(message('X', end), transaction);
      if (end !== 'leave') {
        await transaction[end]();
      }
    }
    say('sent');
    await receive('X', 2);
  },
  async push(producer) {
    const failed = new Set();
    await producer.send(message('T', 'pushed'));
    await push('push', 'T', (received) => {
      const again = failed.has(body(received));
      failed.add(body(received));
      return again ? ConsumeResult.SUCCESS : ConsumeResult.FAILURE;
    });
  },
  async fail(producer) {
    await producer.send(message('T', 'failing'));
    await push('failing', 'T', () => ConsumeResult.FAILURE);
  },
};

const TOPICS = { order: 'F', in_order: 'F', delay: 'D', recall: 'D', transaction: 'X' };

async function main() {
  const checker = {
    async check(asked) {
      say(`asked ${body(asked)}`);
      return TransactionResolution.COMMIT;
    },
  };
  // One topic: with several it asks for their routes one after the other, and waits for settings that came meanwhile.
  const producer = new Producer({ endpoints, topics: [TOPICS[use] ?? 'T'], checker });
  await producer.startup();
  await uses[use](producer);
  say('done');
}

process.stdin.on('end', () => process.exit()).resume();
main().catch((error) => say(error.stack));
