import { readdir, readlink } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { startReportingModel } from '../../support/agents/reporting-model.js';
import { until } from '../../support/basics/until.js';
import { jsonPost, request } from '../../support/clients/raw-http.js';
import { healthTimes } from '../../support/clients/slow-clients.js';
import { memoryOf } from '../../support/processes/processes.js';
import type { Service } from '../../support/service/service.js';

const megabyte = 1024 ** 2;
const answerBytes = 8 * megabyte;
const recordedBytes = 1_000_000;
const readers = 60;
const key = 'Idempotency-Key: the-same-again';

let service: Service;
let id: string;
beforeAll(async () => {
  service = await startReportingModel({ MODEL_API_MAX_OUTPUT_BYTES: String(answerBytes) });
  const accepted = await service.post('/ask', { prompt: `big ${answerBytes}` }, { prefer: 'respond-async' });
  id = String(accepted.body.job_id);
  await until(async () => (await service.get('/jobs')).text.includes('"succeeded"'), 'the answer', 60_000);
  expect((await service.post('/ask', again, { 'idempotency-key': 'the-same-again' })).status).toBe(200);
});
afterAll(() => service.stop());

const again = { prompt: `big ${recordedBytes}` };
const kinds = {
  'GET /jobs/{id}': () => request(`GET /jobs/${id}`),
  'GET /jobs/{id}/events': () => request(`GET /jobs/${id}/events`),
  'an answer that is sent again': () => jsonPost('/ask', JSON.stringify(again), [key]),
} as const;

/** Returns the number of unnamed files in which this process stores answers. */
async function heldFiles(pid: number): Promise<number> {
  const fds = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  return links.filter((link) => link.includes('prompt-relay-answer')).length;
}

/** Sends a request, and reads nothing until the socket is resumed. */
function askAndIgnore(bytes: Buffer): Socket {
  const socket = connect(service.port, '127.0.0.1').pause();
  socket.on('error', () => {});
  socket.write(bytes);
  return socket;
}

/** Resolves with the memory of a process once it no longer grows. */
async function settledMemory(pid: number): Promise<number> {
  const seen: number[] = [];
  return until(
    async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      seen.push((await memoryOf(pid)).bytes);
      const last = seen.slice(-4);
      return last.length === 4 && Math.max(...last) - Math.min(...last) < megabyte ? seen.at(-1) : null;
    },
    'the memory to settle',
    60_000,
  );
}

/** Resolves when the whole answer has arrived. */
async function readAll(socket: Socket): Promise<number> {
  let bytes = 0;
  socket.on('data', (piece: Buffer) => {
    bytes += piece.length;
  });
  socket.resume();
  let before = -1;
  await until(
    async () => {
      [before] = [bytes, await new Promise((resolve) => setTimeout(resolve, 300))];
      return bytes > recordedBytes && before === bytes;
    },
    'the answer to end',
    60_000,
  );
  return bytes;
}

describe('Sixty clients that do not read a long stored answer', () => {
  it.each(Object.entries(kinds))(
    'receive all of it, without a copy of it in memory: %s',
    async (name, ask) => {
      const [worker] = (await service.workers()) as [number];
      const before = (await memoryOf(worker)).bytes;
      const sockets = Array.from({ length: readers }, () => askAndIgnore(ask()));
      await healthTimes(service.url, 20);
      expect((await settledMemory(worker)) - before).toBeLessThan(2 * readers * megabyte);
      expect(await heldFiles(worker)).toBe(0);
      const [first, ...others] = sockets as [Socket, ...Socket[]];
      for (const socket of others) socket.destroy();
      expect(await readAll(first)).toBeGreaterThan(name.startsWith('GET') ? answerBytes : recordedBytes);
      first.destroy();
    },
    90_000,
  );
});
