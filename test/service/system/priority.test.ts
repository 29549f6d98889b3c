import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { type Service, startWithProgram } from '../../support/service/service.js';

const folder = shared(temporaryFolder);
const gate = shared(createAnswerGate);
type Headers = Record<string, string>;
const ada = { 'x-api-key': 'ada-key-0123456789abcdef' };
const bob = { 'x-api-key': 'bob-key-0123456789abcdef' };
const urgent = { 'x-priority': 'priority' };
const flex = { 'x-priority': 'flex' };

/** Has one slot. The program answers while the gate is open. */
async function startOneSlot() {
  const keys = join((await folder()).path, 'keys');
  const lines = [
    `ada:sha256:${digestOf(ada['x-api-key'])}:priority=on,subclients`,
    `bob:sha256:${digestOf(bob['x-api-key'])}`,
  ];
  await writeFile(keys, `${lines.join('\n')}\n`, { mode: 0o600 });
  const env = { MODEL_API_MAX_CONCURRENT: '1', MODEL_API_KEYS_FILE: keys };
  return startWithProgram((await gate()).command, env);
}

const service = shared(startOneSlot);

/** Takes the only slot. Returns the answer of its job, which ends when the gate opens. */
async function takeSlot(of?: Service): Promise<Promise<{ readonly status: number }>[]> {
  await (await gate()).close();
  const to = of ?? (await service());
  const first = to.post('/ask', { prompt: 'first' }, bob);
  await until(async () => (await metric(to, 'jobs_active')) === 1, 'the first job');
  return [first];
}

/** Sends these questions one after the other while the slot is taken. Returns their prompts in the order of their ends. */
async function orderOf(sent: readonly (readonly [prompt: string, headers: Headers])[]): Promise<string[]> {
  const to = await service();
  const all: Promise<unknown>[] = await takeSlot();
  const ended: string[] = [];
  for (const [index, [prompt, headers]] of sent.entries()) {
    const body = { messages: [{ role: 'user', content: prompt }] };
    all.push(to.post('/v1/chat/completions', body, headers).then(() => ended.push(prompt)));
    await until(async () => (await metric(to, 'jobs_queued')) === index + 1, `${index + 1} waiting jobs`);
  }
  await (await gate()).open();
  await Promise.all(all);
  return ended;
}

describe('The priority of a job', () => {
  it('lets it wait before the other jobs of its client, or behind the jobs of all', async () => {
    const order = await orderOf([
      ['flex', { ...bob, ...flex }],
      ['usual', ada],
      ['urgent 1', { ...ada, ...urgent }],
      ['urgent 2', { ...ada, ...urgent }],
      ['bob 1', bob],
      ['bob 2', bob],
    ]);
    expect(order.filter((each) => !each.startsWith('bob'))).toEqual(['urgent 1', 'urgent 2', 'usual', 'flex']);
    expect(order.indexOf('bob 1')).toBeLessThan(2); // urgent jobs take nothing from the share of another
    expect(order.indexOf('bob 2')).toBeLessThan(4);
  });

  it('takes nothing from other sub-clients of the key', async () => {
    const as = (user: string) => ({ ...ada, 'x-openwebui-user-id': user });
    const order = await orderOf([
      ['x', as('x')],
      ['y', as('y')],
      ...['urgent 1', 'urgent 2', 'urgent 3'].map((prompt) => [prompt, { ...as('x'), ...urgent }] as const),
    ]);
    expect(order.indexOf('y')).toBeLessThan(2);
    expect(order.filter((each) => each !== 'y')).toEqual(['urgent 1', 'urgent 2', 'urgent 3', 'x']);
  });

  it('needs an option of the key, and is one of three words', async () => {
    await (await gate()).open();
    const ask = async (headers: Headers) => {
      const { status, body } = await (await service()).post('/ask', { prompt: 'x' }, headers);
      return [status, body.error];
    };
    expect(await ask({ ...bob, ...urgent })).toEqual([403, 'forbidden']);
    expect(await ask({ ...bob, 'x-priority': 'soon' })).toEqual([400, 'validation_error']);
    for (const priority of ['default', 'flex'])
      expect(await ask({ ...bob, 'x-priority': priority })).toEqual([200, undefined]);
    expect(await ask({ ...ada, ...urgent })).toEqual([200, undefined]);
  });
});

describe('The tier in answers', () => {
  const messages = [{ role: 'user', content: 'Hello' }];
  const cases = [
    ['flex', bob, 'flex', 'batch'],
    ['priority', ada, 'priority', 'priority'],
    ['priority', bob, 'default', 'standard'], // as at OpenAI: the tier that was used
    ['auto', ada, 'default', 'standard'],
    ['nonsense', ada, undefined, undefined],
  ] as const;

  it.each(cases)('is the one that was used, in the words of each API: %s', async (tier, headers, openai, anthropic) => {
    await (await gate()).open();
    const to = await service();
    const ignored = tier === 'nonsense' ? 'service_tier' : null;
    const chat = await to.post('/v1/chat/completions', { messages, service_tier: tier }, headers);
    expect([chat.status, chat.body.service_tier, chat.headers.get('x-ignored-parameters')]).toEqual([
      200,
      openai,
      ignored,
    ]);
    const response = await to.post('/v1/responses', { input: 'Hello', service_tier: tier }, headers);
    expect([response.status, response.body.service_tier]).toEqual([200, openai ?? 'default']);
    const version = { ...headers, 'anthropic-version': '2023-06-01' };
    const message = { model: 'default', max_tokens: 10, messages, service_tier: tier };
    const { body } = await to.post('/v1/messages', message, version);
    expect(body.usage).toMatchObject({ input_tokens: expect.any(Number) });
    expect((body.usage as { service_tier?: string }).service_tier).toBe(anthropic);
  });

  it('is in streams, and is that of the header, too', async () => {
    const to = await service();
    const { text } = await to.post('/v1/chat/completions', { messages, stream: true }, { ...ada, ...urgent });
    expect(text).toContain('"service_tier":"priority"');
    const message = { model: 'default', max_tokens: 10, messages, stream: true };
    const events = await to.post('/v1/messages', message, { ...ada, ...flex, 'anthropic-version': '2023-06-01' });
    expect(events.text.match(/"service_tier":"batch"/g)).toHaveLength(2);
    const ordinary = await to.post('/v1/chat/completions', { messages, stream: true }, ada);
    expect(ordinary.text).not.toContain('service_tier');
  });
});

describe('The longest wait that a request accepts', () => {
  it('ends the wait with a time, at once if a request does not wait', async () => {
    // Knows of no long jobs, for which it would refuse a wait of a second at once, too.
    await using to = await startOneSlot();
    const [first] = await takeSlot(to);
    const timeouts = await metric(to, 'queue_timeouts_total');
    for (const prefer of ['wait=0', 'handling=lenient, wait=1; x=y']) {
      const { status, body, headers } = await to.post('/ask', { prompt: 'x' }, { ...bob, prefer });
      expect([status, body.error, Number(headers.get('retry-after')) > 0]).toEqual([503, 'wait_too_long', true]);
    }
    expect(await metric(to, 'queue_timeouts_total')).toBe((timeouts ?? 0) + 1);
    const messages = [{ role: 'user', content: 'x' }];
    const sdk = await to.post('/v1/chat/completions', { messages }, { ...bob, prefer: 'wait=0' });
    expect([sdk.status, sdk.body.error]).toEqual([503, expect.objectContaining({ code: 'wait_too_long' })]);
    const waiting = ['wait=1e9', 'wait=1000000000', 'wait=soon'].map((prefer) =>
      to.post('/ask', { prompt: 'x' }, { ...bob, prefer }),
    );
    await until(async () => (await metric(to, 'jobs_queued')) === 3, 'three waiting jobs');
    await (await gate()).open();
    for (const each of [first, ...waiting]) expect((await each)?.status).toBe(200);
  });

  it('does not bind a job that has its slot', async () => {
    const to = await service();
    await (await gate()).close();
    // An answer arrives before its slot is free again, and this request would not wait for it.
    await until(async () => (await metric(to, 'jobs_active')) === 0, 'the free slot');
    const running = to.post('/ask', { prompt: 'x' }, { ...bob, prefer: 'wait=0' });
    await until(async () => (await metric(to, 'jobs_active')) === 1, 'the job');
    const late = await to.post('/ask', { prompt: 'x' }, { ...bob, prefer: 'wait=1' });
    expect(late.status).toBe(503);
    await (await gate()).open();
    expect((await running).status).toBe(200);
  });
});
