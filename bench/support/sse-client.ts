import { type Agent, request } from 'node:http';

export interface Reading {
  /** Until the first event of this name had come, milliseconds. */
  readonly firstDeltaMs: number;
  /** When it had, nanoseconds of the monotonic clock. */
  readonly firstDeltaAt: bigint;
  readonly firstDelta: string;
  /** Until the end, milliseconds. */
  readonly totalMs: number;
  /** The last event's content. */
  readonly done: Readonly<Record<string, unknown>>;
}

const eventLine = /event: delta\ndata: (.+)\n\n/;
const doneLine = /event: done\ndata: (.+)\n\n/;

/** Asks for a stream, and tells when its first delta came. Rejects when it does not end well. */
export function readStream(agent: Agent, port: number, path: string, body: object): Promise<Reading> {
  const text = JSON.stringify({ ...body, stream: true });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  const begun = process.hrtime.bigint();
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (answer) => {
      let received = '';
      let firstDeltaAt = 0n;
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        received += chunk;
        if (firstDeltaAt === 0n && eventLine.test(received)) firstDeltaAt = process.hrtime.bigint();
      });
      answer.once('end', () => {
        const [delta, done] = [eventLine, doneLine].map((line) => line.exec(received)?.[1]);
        if (delta === undefined || done === undefined) return reject(new Error(`answered ${received.slice(0, 500)}`));
        resolve({
          firstDeltaMs: msBetween(begun, firstDeltaAt),
          firstDeltaAt,
          firstDelta: (JSON.parse(delta) as { text: string }).text,
          totalMs: msBetween(begun, process.hrtime.bigint()),
          done: JSON.parse(done) as Reading['done'],
        });
      });
    });
    asked.once('error', reject).end(text);
  });
}

function msBetween(from: bigint, to: bigint): number {
  return Number(to - from) / 1e6;
}
