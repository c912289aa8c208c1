// What a compressed file holds: unpacked here, or by the browser already, where a server has said how it is packed.
async function unpacked(body) {
  const reader = body.getReader();
  const { value: first = new Uint8Array() } = await reader.read();
  const whole = new ReadableStream({
    start: (controller) => controller.enqueue(first),
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  return first[0] === 0x1f && first[1] === 0x8b ? whole.pipeThrough(new DecompressionStream("gzip")) : whole;
}
