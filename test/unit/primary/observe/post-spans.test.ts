import type { ServerResponse } from 'node:http';
import { postSpans } from '../../../../src/primary/observe/post-spans.js';
import { Collector } from '../../../support/collector.js';
import { freePort } from '../../../support/free-port.js';

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
