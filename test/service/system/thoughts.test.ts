import { untilEnded } from '../../support/clients/background.js';
import { follow, type StreamEvent, stream, textOf } from '../../support/clients/event-stream.js';
import { streamed } from '../../support/doors/sdk-door.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService } from '../../support/service/service.js';

let service: Service;

beforeAll(async () => {
  service = await startService({ env: { MODEL_API_LIVE_SESSIONS: '4', MODEL_API_MAX_OUTPUT_BYTES: '2000' } });
});
afterAll(() => service.stop());

const [messages, completions, responses] = ['/v1/messages', '/v1/chat/completions', '/v1/responses'] as const;
type Door = typeof messages | typeof completions | typeof responses;

const thought = 'Plovdiv is old.';
const model = 'eliza';
const prompt = `My name is Ada.\nthink ${thought}`;

/** Fields that request thoughts in each API. */
const wishes = {
  [messages]: { thinking: { type: 'enabled', budget_tokens: 2000 } },
  [completions]: { reasoning_effort: 'low' },
  [responses]: { reasoning: { effort: 'low', summary: 'auto' } },
} as const;

const nativeRequests: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['/ask', { prompt: `${prompt}\nthink Sofia is near.` }],
  ['/chat', { message: `${prompt}\nthink Sofia is near.` }],
];

const doors: readonly Door[] = [messages, completions, responses];

function asked(door: Door, text = prompt): object {
  if (door === responses) return { model, input: text };
  return { model, messages: [{ role: 'user', content: text }], ...(door === messages && { max_tokens: 500 }) };
}

interface Item {
  readonly id: string;
  readonly type: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly signature?: string;
  readonly summary?: readonly { readonly text: string }[];
  readonly content?: readonly { readonly text: string }[];
}

interface Body {
  readonly id: string;
  readonly content?: readonly Item[];
  readonly output?: readonly Item[];
  readonly choices?: readonly { readonly message: { readonly content: string; readonly reasoning_content?: string } }[];
}

/** Returns the thoughts and the texts of an answer, in order. */
function partsOf(body: unknown): unknown[] {
  const { content, output, choices } = body as Body;
  if (choices !== undefined) {
    return choices.flatMap(({ message: { content: said, reasoning_content: thinks } }) =>
      thinks === undefined ? [said] : [{ thinks }, said],
    );
  }
  if (content !== undefined) return content.map(({ text, thinking: thinks }) => text ?? { thinks });
  return (output ?? []).map(({ type, summary = [], content: said = [] }) =>
    type === 'reasoning'
      ? { thinks: summary.map(({ text }) => text).join('|') }
      : said.map(({ text }) => text).join(''),
  );
}

/** Returns the thoughts and the texts of a stream of this API, in order. */
async function partsOfStream(door: Door, body: object): Promise<unknown[]> {
  const { text } = await service.post(door, { ...body, stream: true });
  if (door === responses) {
    const last = streamed(text).at(-1) as { type: string; response: Body };
    expect(last.type).toBe('response.completed');
    return partsOf(last.response);
  }
  const parts: (string | { thinks: string })[] = [];
  for (const piece of streamed(text).flatMap((chunk) => pieceIn(chunk) ?? [])) {
    const last = parts.at(-1);
    if (typeof piece === 'string') parts.push(typeof last === 'string' ? `${parts.pop()}${piece}` : piece);
    else if (typeof last === 'object') last.thinks += piece.thinks;
    else parts.push(piece);
  }
  return parts;
}

interface Chunk {
  readonly delta?: { readonly text?: string; readonly thinking?: string };
  readonly choices?: readonly { readonly delta: { readonly content?: string; readonly reasoning_content?: string } }[];
}

function pieceIn(chunk: unknown): string | { thinks: string } | undefined {
  if (typeof chunk === 'string') return undefined;
  const { delta, choices: [choice] = [] } = chunk as Chunk;
  const thinks = delta?.thinking ?? choice?.delta.reasoning_content;
  return thinks === undefined ? delta?.text || choice?.delta.content || undefined : { thinks };
}

async function respond(input: unknown, more: object = wishes[responses]) {
  const { status, body, headers, text } = await service.post(responses, { model, input, ...more });
  return { status, body: body as unknown as Body, text, session: headers.get('x-session') };
}

describe('The thinking of the model', () => {
  it.each(doors)('precedes the text that follows it, plain and streamed: %s', async (door) => {
    const body = { ...asked(door), ...wishes[door] };
    const parts = partsOf((await service.post(door, body)).body);
    expect(parts).toEqual([{ thinks: thought }, expect.stringContaining('Ada')]);
    expect(await partsOfStream(door, body)).toEqual(parts);
  });

  it.each(doors)('is not part of an answer unless the client requests it: %s', async (door) => {
    const { body, text } = await service.post(door, asked(door));
    expect(partsOf(body)).toEqual([expect.stringContaining('Ada')]);
    expect(text).not.toMatch(/thinking|reasoning_content|"type":"reasoning"/);
    expect(await partsOfStream(door, asked(door))).toEqual(partsOf(body));
  });

  it.each(doors)('is replayed word for word with the same idempotency key: %s', async (door) => {
    for (const isStream of [false, true]) {
      const key = { 'idempotency-key': `thoughts ${door} ${isStream}` };
      const ask = () => service.post(door, { ...asked(door), ...wishes[door], stream: isStream }, key);
      const [first, again] = [await ask(), await ask()];
      expect(first.text).toContain(thought);
      expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([first.text, 'true']);
    }
  });

  it('may be sent back with the history, and the process continues', async () => {
    const said = { role: 'user', content: 'My name is Ada.\nthink of Ada' };
    const ask = (more: object) => service.post(messages, { ...asked(messages), ...wishes[messages], ...more });
    const { body } = await ask({ messages: [said] });
    const { content } = body as unknown as Body;
    expect(content?.map(({ type }) => type)).toEqual(['thinking', 'text']);
    const next = [said, { role: 'assistant', content }, { role: 'user', content: 'What is my name?' }];
    const { status, body: second, headers } = await ask({ messages: next });
    expect([status, headers.get('x-session'), partsOf(second)]).toEqual([200, 'live', ['Your name is Ada.']]);
  });
});

describe('The thoughts of a stored response', () => {
  it('can be read, and are not part of the input of the next request', async () => {
    const first = await respond(prompt);
    const read = await service.get(`${responses}/${first.body.id}`);
    expect(read.body).toEqual(first.body);
    expect(partsOf(read.body)).toEqual([{ thinks: thought }, expect.stringContaining('Ada')]);
    const next = await respond('What is my name?', { previous_response_id: first.body.id, ...wishes[responses] });
    expect([next.session, partsOf(next.body)]).toEqual(['live', ['Your name is Ada.']]);
    const replayed = await respond('Who am I?', { previous_response_id: first.body.id });
    expect([replayed.session, partsOf(replayed.body)]).toEqual(['replay', ['Your name is Ada.']]);
  });

  it('can be referenced, each by its id', async () => {
    const { body } = await respond(prompt);
    const references = body.output?.map(({ id }) => ({ type: 'item_reference', id }));
    expect(references?.map(({ id }) => id.slice(0, 3))).toEqual(['rs_', 'msg']);
    const asks = { role: 'user', content: 'What is my name?' };
    const next = await respond([{ role: 'user', content: prompt }, ...(references ?? []), asks]);
    expect([next.status, partsOf(next.body)]).toEqual([200, ['Your name is Ada.']]);
    const unknown = await respond([{ type: 'item_reference', id: `${references?.[0]?.id}_7` }, asks]);
    expect(unknown.status).toBe(400);
  });

  it('have no text if the request only sets an effort', async () => {
    const { body, text } = await respond('Hello.\nthink in secret', { reasoning: { effort: 'low' } });
    expect(partsOf(body)).toEqual([{ thinks: '' }, expect.any(String)]);
    expect(body.output?.[0]).toMatchObject({ type: 'reasoning', summary: [] });
    expect(text.match(/in secret/g)?.length ?? 0).toBeLessThan(2); // Eliza may repeat it
  });
});

describe('The thoughts of a background job', () => {
  it('are part of its result and of its events, wherever a reader resumes', async () => {
    const accepted = await respond(prompt, { background: true, ...wishes[responses] });
    expect(accepted.status).toBe(202);
    const jobId = accepted.body.id.slice('resp_'.length);
    const { status, result } = await untilEnded(service, jobId);
    expect(status).toBe('succeeded');
    expect(partsOf(result)).toEqual([{ thinks: thought }, expect.stringContaining('Ada')]);
    expect((await service.get(`${responses}/${accepted.body.id}`)).body).toEqual(result);
    const all = await eventsOf(jobId);
    const answer = partsOf(result)[1] as string;
    expect([textOf(all), all.at(-1)?.data]).toEqual([answer, result]);
    const thoughts = (events: readonly StreamEvent[]) =>
      events.flatMap(({ event, data }) => (event === 'thought' ? [data.text] : [])).join('');
    expect(thoughts(all)).toBe(thought);
    const native = await service.post('/ask', { prompt, thoughts: true }, { prefer: 'respond-async' });
    expect((await untilEnded(service, String(native.body.job_id))).result).toMatchObject({ thoughts: thought });
    for (const [index, { place }] of all.entries()) {
      if (place === undefined || index === all.length - 1) continue;
      const [rest, missing] = [await eventsOf(jobId, place), all.slice(index + 1)];
      expect([textOf(rest), thoughts(rest), rest.at(-1)?.data]).toEqual([textOf(missing), thoughts(missing), result]);
    }
  });
});

async function eventsOf(jobId: string, after: string | null = null): Promise<StreamEvent[]> {
  return (await follow(service, jobId, after)).remainingEvents();
}

// After the tests of live sessions, because conversations take their places.
describe('The thinking of the model in the native API', () => {
  it.each(nativeRequests)('is not part of POST %s unless the client requests it', async (path, body) => {
    for (const more of [{}, { thoughts: false }]) {
      const { status, text } = await service.post(path, { ...body, ...more });
      expect(status).toBe(200);
      expect(text).not.toContain('"thought');
      await using answer = await stream(service, path, { ...body, ...more });
      const events = await answer.remainingEvents();
      expect(new Set(events.map(({ event }) => event))).toEqual(new Set(['started', 'delta', 'done']));
    }
  });

  it.each(nativeRequests)('is part of POST %s if the client requests it, plain and streamed', async (path, body) => {
    const asked = { ...body, thoughts: true };
    const two = `${thought}\n\nSofia is near.`;
    expect((await service.post(path, asked)).body).toMatchObject({ thoughts: two, response: expect.any(String) });
    await using answer = await stream(service, path, asked);
    const events = await answer.remainingEvents();
    const textOfAll = (name: string) => events.flatMap(({ event, data }) => (event === name ? data.text : [])).join('');
    expect(events.at(-1)?.data).toMatchObject({ thoughts: two, response: textOfAll('delta') });
    expect(textOfAll('thought')).toBe(two);
    const names = [...new Set(events.map(({ event }) => event))];
    expect(names).toEqual(['started', 'thought', 'delta', 'done']);
  });

  it.each(nativeRequests)('is no field of an answer of POST %s without thoughts', async (path, body) => {
    const quiet = Object.fromEntries(Object.keys(body).map((name) => [name, 'Hello']));
    const { status, text } = await service.post(path, { ...quiet, thoughts: true });
    expect([status, text.includes('"thoughts"')]).toEqual([200, false]);
    expect((await service.post(path, { ...quiet, thoughts: 'yes' })).body).toMatchObject({ error: 'validation_error' });
  });

  it('precedes a value that fits a schema', async () => {
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const { body } = await service.post('/ask', { prompt, schema, thoughts: true });
    expect(body).toMatchObject({ thoughts: thought, structured: { name: expect.any(String) } });
  });
});

describe('Thoughts that are too long', () => {
  const long = `Hello.\nthink ${'aye '.repeat(300)}\nthink ${'nay '.repeat(300)}`;

  it.each(doors)('fail the job as an answer that is too long: %s', async (door) => {
    const plain = await service.post(door, { ...asked(door, long), ...wishes[door] });
    expect(plain.status).toBe(500);
    expect(plain.text).toContain('2000 bytes');
    const { status, text } = await service.post(door, { ...asked(door, long), ...wishes[door], stream: true });
    expect(status).toBe(200);
    expect(text).toContain('2000 bytes');
    await untilJobs(service, 0, 0);
  });

  it.each(['/ask', '/chat'])('fail the job as an answer that is too long: %s', async (path) => {
    const body = { [path === '/ask' ? 'prompt' : 'message']: long, thoughts: true };
    const plain = await service.post(path, body);
    expect([plain.status, plain.body.reason]).toEqual([500, 'output_too_large']);
    await using answer = await stream(service, path, body);
    expect((await answer.remainingEvents()).at(-1)).toMatchObject({
      event: 'error',
      data: { reason: 'output_too_large' },
    });
    await untilJobs(service, 0, 0);
  });

  it('cause no failure if the client did not request them', async () => {
    const { status } = await service.post(completions, { ...asked(completions, long), model: 'eliza' });
    expect(status).toBe(200);
  });
});

it('The log and the metrics contain no thought', async () => {
  const { body } = await service.post(messages, { ...asked(messages), ...wishes[messages] });
  await service.log('http_request_completed', (record) => record.request_id === String(body.id).slice('msg_'.length));
  const { text } = await service.get('/metrics');
  for (const told of [JSON.stringify(service.logs), text]) expect(told).not.toMatch(/Plovdiv|secret|aye aye|nay nay/);
});
