import type { ServerResponse } from 'node:http';
import {
  maxBatch,
  maxWaiting,
  type PostResult,
  postSpans,
  SpanExporter,
} from '../../../../src/features/traces/span-exporter.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { freePort } from '../../../support/basics/free-port.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { settled } from '../../../support/basics/settled.js';
import { Collector } from '../../../support/service/collector.js';

const taken: PostResult = { kind: 'taken', rejected: 0, reason: '' };
const busy: PostResult = { kind: 'retry', reason: 'the collector answered 503', pauseMs: null };
const refused: PostResult = { kind: 'refused', reason: 'the collector answered 400' };
const hangs = Symbol('hangs');

/** Creates an exporter whose collector gives these answers in order, then accepts everything. */
function exporterFor(...answers: readonly (PostResult | typeof hangs)[]) {
  const left = [...answers];
  const [clock, log] = [new FakeClock(), new LogBook()];
  const bodies: string[] = [];
  const post = (body: string, signal: AbortSignal): Promise<PostResult> => {
    bodies.push(body);
    const answer = left.shift() ?? taken;
    if (answer !== hangs) return Promise.resolve(answer);
    return new Promise((resolve) => {
      const end = () => resolve({ kind: 'refused', reason: (signal.reason as Error).message });
      if (signal.aborted) end();
      else signal.addEventListener('abort', end);
    });
  };
  const exporter = new SpanExporter({ 'service.name': 'relay' }, '1.2.3', { post, clock, log, random: () => 0 });
  const spansIn = (body: string) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans as { readonly n: number }[];
  const add = (count: number) => {
    for (let n = 0; n < count; n++) exporter.addSpan(JSON.stringify({ n }));
  };
  return { exporter, clock, log, bodies, add, batches: () => bodies.map((body) => spansIn(body).length) };
}

describe('A span exporter', () => {
  it('identifies itself in each batch, with the version of its attribute names', async () => {
    const { exporter, bodies, add } = exporterFor();
    add(2);
    await exporter.closeExporter();
    const schemaUrl = expect.stringMatching(/^https:\/\/opentelemetry\.io\/schemas\/1\.\d+\.\d+$/);
    expect(bodies.map((body) => JSON.parse(body))).toEqual([
      {
        resourceSpans: [
          {
            resource: { attributes: [{ key: 'service.name', value: { stringValue: 'relay' } }] },
            schemaUrl,
            scopeSpans: [{ scope: { name: 'prompt-relay', version: '1.2.3' }, schemaUrl, spans: [{ n: 0 }, { n: 1 }] }],
          },
        ],
      },
    ]);
  });

  it('sends a full batch immediately, and a partial one after five seconds', async () => {
    const { clock, add, batches, exporter } = exporterFor();
    add(maxBatch + 1);
    await settled();
    expect(batches()).toEqual([maxBatch]);
    await clock.advance(4999);
    expect(batches()).toEqual([maxBatch]);
    await clock.advance(1);
    expect(batches()).toEqual([maxBatch, 1]);
    expect([exporter.counts, clock.pending]).toEqual([{ exported: maxBatch + 1, dropped: 0 }, 0]);
  });

  it('sends one batch at a time, and drops what exceeds the buffer meanwhile', async () => {
    const { clock, log, add, batches, exporter } = exporterFor(hangs);
    add(maxBatch);
    await settled();
    add(maxWaiting + 7);
    expect(batches()).toEqual([maxBatch]);
    expect(exporter.counts).toEqual({ exported: 0, dropped: 7 });
    await clock.advance(10_000); // the first batch gets no answer
    expect(batches()).toEqual(Array(5).fill(maxBatch));
    expect(exporter.counts).toEqual({ exported: maxWaiting, dropped: maxBatch + 7 });
    expect(log.entries.map(({ event }) => event)).toEqual(['trace_export_failed', 'trace_export_back']);
  });

  it('retries with longer and longer pauses if the collector is busy, and drops the batch at the fifth refusal', async () => {
    const { clock, log, add, bodies, exporter } = exporterFor(busy, busy, busy, busy, busy);
    add(3);
    await clock.advance(5000);
    const times: number[] = [];
    for (let ms = 0; ms <= 16_000; ms += 500) {
      if (bodies.length > times.length) times.push(ms);
      await clock.advance(500);
    }
    expect(times).toEqual([0, 1000, 3000, 7000, 15_000]);
    expect(exporter.counts).toEqual({ exported: 0, dropped: 3 });
    add(2);
    await clock.advance(5000);
    expect(exporter.counts).toEqual({ exported: 2, dropped: 3 });
    expect(log.entries).toMatchObject([
      { level: 'warn', event: 'trace_export_failed', fields: { error: 'the collector answered 503' } },
      { level: 'info', event: 'trace_export_back', fields: { dropped: 3 } },
    ]);
  });

  it('waits as long as the collector requests, but at most half a minute', async () => {
    const { clock, add, bodies } = exporterFor({ ...busy, pauseMs: 7000 }, { ...busy, pauseMs: 3_600_000 });
    add(1);
    await clock.advance(5000);
    await clock.advance(6999);
    expect(bodies).toHaveLength(1);
    await clock.advance(1);
    expect(bodies).toHaveLength(2);
    await clock.advance(30_000);
    expect(bodies).toHaveLength(3);
  });

  it('drops a permanently refused batch immediately, and counts a partially accepted one', async () => {
    const { clock, log, add, exporter } = exporterFor(refused, { kind: 'taken', rejected: 2, reason: 'too old' });
    add(4);
    await clock.advance(5000);
    expect(exporter.counts).toEqual({ exported: 0, dropped: 4 });
    add(5);
    await clock.advance(5000);
    expect(exporter.counts).toEqual({ exported: 3, dropped: 6 });
    expect(log.entries).toHaveLength(1);
  });

  it.each([-5, 99])('ignores a collector that claims to have rejected %d of three', async (rejected) => {
    const { clock, add, exporter } = exporterFor({ kind: 'taken', rejected, reason: '' });
    add(3);
    await clock.advance(5000);
    expect(exporter.counts.exported + exporter.counts.dropped).toBe(3);
    expect(exporter.counts.exported).toBe(rejected < 0 ? 3 : 0);
  });

  it('starts no timer while there is nothing to send', async () => {
    const { clock, bodies, exporter } = exporterFor();
    expect(clock.pending).toBe(0);
    await exporter.closeExporter();
    expect([clock.pending, bodies]).toEqual([0, []]);
  });
});

describe('The shutdown of a span exporter', () => {
  it('sends all that is left, in as many batches as needed', async () => {
    const { clock, add, batches, exporter } = exporterFor(hangs);
    add(maxBatch);
    await settled();
    add(maxBatch + 3);
    const closed = exporter.closeExporter();
    await clock.advance(3000); // the first batch hangs
    await closed;
    expect(batches()).toEqual([maxBatch]);
    expect(exporter.counts).toEqual({ exported: 0, dropped: 2 * maxBatch + 3 });
    expect(clock.pending).toBe(0);
  });

  it('does not wait for the pause after a failed attempt, and retries once', async () => {
    const { clock, add, batches, exporter } = exporterFor(busy);
    add(3);
    await clock.advance(5000);
    expect(batches()).toEqual([3]);
    await exporter.closeExporter();
    expect(batches()).toEqual([3, 3]);
    expect(exporter.counts).toEqual({ exported: 3, dropped: 0 });
  });

  it('waits only half a second if nothing was accepted before', async () => {
    const { clock, log, add, exporter } = exporterFor(refused, hangs);
    add(1);
    await clock.advance(5000);
    add(2);
    const closed = exporter.closeExporter();
    await clock.advance(500);
    await closed;
    expect(exporter.counts).toEqual({ exported: 0, dropped: 3 });
    expect(log.entries).toHaveLength(1);
  });
});

const never = new AbortController().signal;
const body = '{"resourceSpans":[]}';

async function resultOf(answer: (res: ServerResponse) => void, signal = never) {
  await using collector = await Collector.start();
  collector.answer = answer;
  return await postSpans({ url: `${collector.url}/v1/traces`, headers: {} })(body, signal);
}

describe('A batch of spans', () => {
  it('is posted as JSON, with the headers of the operator, on a reused connection', async () => {
    await using collector = await Collector.start();
    const post = postSpans({ url: `${collector.url}/at/v1/traces`, headers: { 'X-Team': 'ml' } });
    for (let n = 0; n < 3; n++) expect(await post(body, never)).toMatchObject({ kind: 'taken', rejected: 0 });
    expect(collector.requests).toHaveLength(3);
    expect(collector.requests[0]).toMatchObject({
      path: '/at/v1/traces',
      body,
      headers: { 'content-type': 'application/json', 'x-team': 'ml' },
    });
    expect(collector.connections).toBeLessThan(3);
  });

  it.each([
    ['{}', 0],
    ['', 0],
    ['no JSON', 0],
    ['null', 0],
    ['{"partialSuccess":{}}', 0],
    ['{"partialSuccess":null}', 0],
    ['{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}', 3],
    ['{"partialSuccess":{"rejectedSpans":2}}', 2],
    ['{"partialSuccess":{"rejectedSpans":"many"}}', 0],
    [`{"partialSuccess":{"rejectedSpans":1,"errorMessage":"${'a'.repeat(70_000)}"}}`, 0],
  ])('is accepted, except for what the collector rejects: %.70s', async (said, rejected) => {
    const result = await resultOf((res) => res.end(said));
    expect(result).toMatchObject({ kind: 'taken', rejected });
    expect(JSON.stringify(result).length).toBeLessThan(400);
  });

  it.each([400, 401, 404, 413, 500, 501, 301])('is permanently refused with %d', async (status) => {
    const result = await resultOf((res) => res.writeHead(status, { location: '/elsewhere' }).end('why'));
    expect(result).toEqual({ kind: 'refused', reason: `the collector answered ${status}` });
  });

  it.each([
    [429, '7', 7000],
    [502, undefined, null],
    [503, 'Wed, 21 Oct 2026 07:28:00 GMT', null],
    [504, '-1', null],
  ])('can be retried after %d', async (status, retryAfter, pauseMs) => {
    const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
    const result = await resultOf((res) => res.writeHead(status, headers).end());
    expect(result).toEqual({ kind: 'retry', reason: `the collector answered ${status}`, pauseMs });
  });

  it('can be retried if there is no collector, or if it closes the connection', async () => {
    const post = postSpans({ url: `http://127.0.0.1:${await freePort()}/v1/traces`, headers: {} });
    expect(await post(body, never)).toEqual({ kind: 'retry', reason: 'no connection: ECONNREFUSED', pauseMs: null });
    expect(await resultOf((res) => res.destroy())).toMatchObject({ kind: 'retry' });
  });

  it('is abandoned with the signal, before the answer and during it', async () => {
    for (const begin of [() => {}, (res: ServerResponse) => void res.writeHead(200).write('{')]) {
      const controller = new AbortController();
      const answer = (res: ServerResponse) => {
        begin(res);
        controller.abort(new Error('that is enough'));
      };
      expect(await resultOf(answer, controller.signal)).toEqual({ kind: 'refused', reason: 'that is enough' });
    }
  });
});
