import { type Agent, request } from 'node:http';

export interface Reading {
  /** Time until the first event with this name, in milliseconds. */
  readonly firstDeltaMs: number;
  /** Arrival of that event, in nanoseconds of the monotonic clock. */
  readonly firstDeltaAt: bigint;
  readonly firstDelta: string;
  /** Time until the end, in milliseconds. */
  readonly totalMs: number;
  /** Content of the last event. */
  readonly done: Readonly<Record<string, unknown>>;
}

const eventLine = /event: delta\ndata: (.+)\n\n/;
const doneLine = /event: done\ndata: (.+)\n\n/;

/**
 * Requests a stream of this service, and measures the arrival of its first delta. Rejects if the stream does not end
 * with `done`.
 */
export async function readStream(agent: Agent, port: number, path: string, body: object): Promise<Reading> {
  const { received, firstAt, begun, ended } = await receive({ agent, port, path, body, first: eventLine });
  const [delta, done] = [eventLine, doneLine].map((line) => line.exec(received)?.[1]);
  if (delta === undefined || done === undefined) throw new Error(`answered ${received.slice(0, 500)}`);
  return {
    firstDeltaMs: msBetween(begun, firstAt),
    firstDeltaAt: firstAt,
    firstDelta: (JSON.parse(delta) as { text: string }).text,
    totalMs: msBetween(begun, ended),
    done: JSON.parse(done) as Reading['done'],
  };
}

const textLine = /^data: .*"delta":\{[^}]*"content":"[^"]/m;

/**
 * Requests a stream of POST /v1/chat/completions. Resolves with the milliseconds until the first delta of its text, and
 * rejects if no delta arrives.
 */
export async function firstTextOf(agent: Agent, port: number, body: object): Promise<number> {
  const path = '/v1/chat/completions';
  const { received, firstAt, begun } = await receive({ agent, port, path, body, first: textLine });
  if (firstAt === 0n) throw new Error(`answered ${received.slice(0, 500)}`);
  return msBetween(begun, firstAt);
}

interface StreamRequest {
  readonly agent: Agent;
  readonly port: number;
  readonly path: string;
  readonly body: object;
  /** Pattern of the text whose arrival is measured. */
  readonly first: RegExp;
}

interface Received {
  readonly received: string;
  /** Arrival in nanoseconds of the monotonic clock; 0 if the text never arrived. */
  readonly firstAt: bigint;
  readonly begun: bigint;
  readonly ended: bigint;
}

function receive({ agent, port, path, body, first }: StreamRequest): Promise<Received> {
  const text = JSON.stringify({ ...body, stream: true });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  const begun = process.hrtime.bigint();
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (answer) => {
      let received = '';
      let firstAt = 0n;
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        received += chunk;
        if (firstAt === 0n && first.test(received)) firstAt = process.hrtime.bigint();
      });
      answer.once('end', () => resolve({ received, firstAt, begun, ended: process.hrtime.bigint() }));
    });
    asked.once('error', reject).end(text);
  });
}

function msBetween(from: bigint, to: bigint): number {
  return Number(to - from) / 1e6;
}
