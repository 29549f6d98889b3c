import { connect, type Socket } from 'node:net';
import { until } from '../../support/basics/until.js';
import { memoryOf } from '../../support/processes/processes.js';
import { type Service, startService } from '../../support/service/service.js';

const megabyte = 1024 * 1024;
const clients = 250;

/** Sends a megabyte of a body that is a little longer. */
function sendMost(service: Service): Socket {
  const socket = connect(service.port, '127.0.0.1');
  socket.on('error', () => {}).resume();
  const head = ['POST /ask HTTP/1.1', 'Host: localhost', 'Content-Type: application/json'];
  socket.write([...head, `Content-Length: ${megabyte + 1}`, '', ''].join('\r\n'));
  socket.write(Buffer.alloc(megabyte, ' '));
  return socket;
}

describe('Unfinished bodies', () => {
  it('use at most 128 MB of a worker together, and delay no small request', async () => {
    await using service = await startService({ env: { MODEL_API_BODY_LIMIT: '16mb' } });
    const [worker] = await service.workers();
    const before = (await memoryOf(worker as number)).bytes;
    const sockets = Array.from({ length: clients }, () => sendMost(service));
    await until(async () => (await memoryOf(worker as number)).bytes - before > 100 * megabyte, 'the bodies');
    const sent = () =>
      sockets.reduce((sum, { bytesWritten, writableLength }) => sum + bytesWritten - writableLength, 0);
    let last = -1;
    await until(async () => {
      const [earlier, now] = [last, sent()];
      last = now;
      await new Promise((resolve) => setTimeout(resolve, 500));
      return earlier === now;
    }, 'the worker to read no further');
    for (let count = 0; count < 5; count++) expect((await service.post('/ask', { prompt: 'hello' })).status).toBe(200);
    const { peakBytes } = await memoryOf(worker as number);
    expect(peakBytes - before).toBeLessThan(175 * megabyte); // each connection has a chunk of up to 64 KB in transit
    for (const socket of sockets) socket.destroy();
  });
});
