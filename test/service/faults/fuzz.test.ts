import { once } from 'node:events';
import { connect } from 'node:net';
import { withResolvers } from '../../../src/shared/async.js';
import { randomNumbers } from '../../support/basics/random.js';
import { type FuzzedRequest, RequestMaker } from '../../support/clients/fuzzed-request.js';
import { metric } from '../../support/documents/exposition.js';
import { Contract } from '../../support/doors/contract.js';
import { recovers, runtimeOf } from '../../support/jobs/jobs.js';
import { startWithProgram, twoWorkers } from '../../support/service/service.js';

const requests = Number(process.env.FUZZ_REQUESTS ?? 1000);
const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
const lanes = 8;
const key = 'key-of-the-fuzzer';
const bodyLimitBytes = 64 * 1024;
const maxFaultsShown = 10;
/** Time limit for the answer to a complete request. */
const answerLimitMs = 20_000;
/** First line of the live status. */
const liveEvent = 'event: snapshot';

interface WholeAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

/** Sends a request on a new connection, and reads until the service closes it. */
async function answerTo(port: number, bytes: Buffer): Promise<WholeAnswer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.setTimeout(answerLimitMs, () => socket.destroy(new Error('no answer in time')));
  const received: Buffer[] = [];
  const seenEnough = withResolvers();
  socket.on('data', (part: Buffer) => {
    received.push(part);
    if (part.includes(liveEvent)) seenEnough.resolve(); // the stream ends only when its viewer disconnects
  });
  socket.write(bytes);
  await Promise.race([once(socket, 'end'), seenEnough.promise]);
  socket.destroy();
  return parsed(Buffer.concat(received));
}

function parsed(bytes: Buffer): WholeAnswer {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) throw new Error(`no answer but ${JSON.stringify(bytes.toString())}`);
  const [first = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const status = Number(first.split(' ')[1]);
  const rest = bytes.subarray(headEnd + 4);
  if (status === 100) return parsed(rest);
  const headers = new Map(lines.map((line) => splitAt(line, line.indexOf(':'))));
  const isChunked = headers.get('transfer-encoding') === 'chunked';
  return { status, headers, text: (isChunked ? unchunked(rest) : rest).toString() };
}

function splitAt(line: string, colon: number): [name: string, value: string] {
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

function unchunked(bytes: Buffer): Buffer {
  const lineEnd = bytes.indexOf('\r\n');
  const length = Number.parseInt(bytes.toString('latin1', 0, lineEnd), 16);
  if (!(length > 0)) return Buffer.alloc(0);
  const start = lineEnd + 2;
  return Buffer.concat([bytes.subarray(start, start + length), unchunked(bytes.subarray(start + length + 2))]);
}

/** Compares the answers with the contract, and collects the violations. */
class Judge {
  readonly faults: string[] = [];
  readonly statuses = new Map<number, number>();
  readonly #contract = new Contract();

  judge({ method, path, bytes }: FuzzedRequest, { status, headers, text }: WholeAnswer): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    const header = (name: string) => headers.get(name);
    try {
      if (status === 500) throw new Error(`a request was answered with 500: ${text.slice(0, 200)}`);
      this.#contract.check({ method, path, status, header, text });
      const isStream = header('content-type')?.startsWith('text/event-stream');
      if (isStream && method !== 'HEAD' && !text.includes(liveEvent)) this.#checkLast(method, path, text);
    } catch (error) {
      this.blame(bytes, error);
    }
  }

  blame(bytes: Buffer, error: unknown): void {
    const shown = JSON.stringify(bytes.toString('latin1', 0, 1500));
    this.faults.push(`${(error as Error).message}\n    request: ${shown}`);
  }

  /** The last event equals the body of a plain answer. */
  #checkLast(method: string, path: string, text: string): void {
    const [, name, data = ''] = /event: (\w+)\ndata: (.*)\n\n$/.exec(text) ?? [];
    if (name !== 'done') throw new Error(`a stream has ended with ${name}: ${data}`);
    const header = (wanted: string) => (wanted === 'content-type' ? 'application/json' : null);
    this.#contract.check({ method, path, status: 200, header, text: data });
  }
}

describe('Any request', () => {
  it('is answered as documented, never with 500, and the service stays healthy', async () => {
    process.stderr.write(`${requests} requests, FUZZ_SEED=${seed}\n`);
    const env = { ...twoWorkers, MODEL_API_KEY: key, MODEL_API_BODY_LIMIT: String(bodyLimitBytes) };
    // The answer to a prompt that is only a terminal sequence would otherwise be empty.
    const endsWithDot = `sh -c 'cat && echo .'`;
    await using service = await startWithProgram(endsWithDot, { ...env, MODEL_API_READINESS_INTERVAL_SECONDS: '0' });
    const maker = new RequestMaker(randomNumbers(seed), key, bodyLimitBytes);
    const judge = new Judge();
    let left = requests;
    const lane = async () => {
      while (left-- > 0) {
        const request = maker.next();
        try {
          const answer = await answerTo(service.port, request.bytes);
          judge.judge(request, answer);
          const id = /"conversation_id":"([\w-]+)"/.exec(answer.text)?.[1];
          if (id !== undefined) maker.ids.unshift(id);
          maker.ids.splice(20);
        } catch (error) {
          judge.blame(request.bytes, error);
        }
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    process.stderr.write(`statuses: ${JSON.stringify([...judge.statuses].sort(([a], [b]) => a - b))}\n`);
    expect(judge.faults.slice(0, maxFaultsShown).join('\n')).toBe('');
    for (const status of [200, 400, 401, 403, 404, 405, 413]) expect(judge.statuses.has(status)).toBe(true);
    await recovers(service);
    expect(await runtimeOf(service)).toMatchObject({ active_requests: 0, queued_requests: 0, rejected_total: 0 });
    expect(await metric(service, 'jobs_total{operation="ask",outcome="internal_error"}')).toBe(0);
    expect(await metric(service, 'jobs_total{operation="chat",outcome="internal_error"}')).toBe(0);
    const { body } = await service.get('/health');
    expect(body).toMatchObject({ status: 'ok', readiness: { model_cli: { status: 'ready' } } });
    expect(service.logs.filter(({ level }) => level === 'error')).toEqual([]);
    expect(await service.jobProcesses()).toEqual([]);
  }, 120_000);
});
