import { type Asker, post, type Send, uploaded } from './asker.js';
import { promptLine } from './batches.js';

const megabyte = 1024 ** 2;
const order = { endpoint: '/v1/chat/completions', completion_window: '24h' };

/** Creates a batch of one file in each request. */
async function create(asker: Asker, file: Buffer, isCancelled = false): Promise<Send> {
  const id = await uploaded(asker, file, 'batch');
  return async (signal) => {
    const { status, body } = await post(asker, '/v1/batches', { ...order, input_file_id: id }, signal);
    if (status === 200 && isCancelled) await post(asker, `/v1/batches/${body.id}/cancel`, {}, signal);
    return status;
  };
}

function lines(count: number, bytes: number): Buffer {
  const all = Array.from({ length: count }, (_, index) =>
    Buffer.from(`${promptLine(`l${index}`, 'x'.repeat(bytes))}\n`),
  );
  return Buffer.concat(all);
}

/** Batches that could take the time of other clients. */
export const hostileBatches = {
  'batches of four million lines': (asker: Asker) => create(asker, Buffer.alloc(8 * megabyte, 'x\n')),
  'batches of 30 MB of blank lines': (asker: Asker) =>
    create(asker, Buffer.concat([Buffer.alloc(30 * megabyte, '\n'), lines(1, 10)])),
  'batches of a line of 60 MB': (asker: Asker) => create(asker, Buffer.alloc(60 * megabyte, 'x')),
  'batches of four lines of 15 MB': (asker: Asker) => create(asker, lines(4, 15 * megabyte)),
  'batches of four lines of 15 MB that are cancelled': (asker: Asker) => create(asker, lines(4, 15 * megabyte), true),
  'batches of 2,000 lines': (asker: Asker) => create(asker, lines(2000, 10)),
  'batches of 20,000 lines that are cancelled': (asker: Asker) => create(asker, lines(20_000, 10), true),
} as const;
