import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import {
  type Behaviour,
  breaksAfter,
  breaksIn,
  conversationOf,
  endsFor,
  type MessagesApi,
  type MessagesRequest,
  refuses,
  says,
  saysInBlocks,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { until } from '../../support/basics/until.js';
import { note, ToolClient } from '../../support/clients/tool-client.js';
import { askDoor, type Door, type DoorAnswer, doors } from '../../support/doors/door-answers.js';
import {
  answerFor,
  cells,
  contents,
  type Manner,
  manners,
  messageFor,
  nameOf,
  second,
} from '../../support/doors/endings.js';
import type { Answer, Service } from '../../support/service/service.js';

const model = 'claude-sonnet-5';
const concurrent = 3;
const columns = Object.keys(contents).length;

const doorList = Object.values(doors);

/**
 * A third of the cells, so that each stop reason and each content occurs twice or more; test/service/faults/endings.test.ts
 * has them all, with a played claude.
 */
const asked = cells.flatMap((cell, at) => {
  const [row, column] = [Math.floor(at / columns), at % columns];
  const manner = manners[(2 * row + column) % manners.length] as Manner;
  return (row + column) % 3 === 0 ? [{ name: nameOf(cell, manner), cell, manner }] : [];
});

let api: MessagesApi;
let service: Service;
/** Behaviour of the API for a prompt, request by request. The last one is repeated. */
const plays = new Map<string, readonly Behaviour[]>();
const counts = new Map<string, number>();

/** Returns the prompt of a request. When the CLI retries, it may append a text to the prompt. */
function promptOf(request: MessagesRequest): string {
  const heard = conversationOf(request).map(({ text }) => text);
  return [...plays.keys()].find((name) => heard.some((text) => text.includes(name))) ?? '';
}

/** Returns a prompt to which the API responds in this way. */
function prompt(name: string, ...behaviours: readonly Behaviour[]): string {
  plays.set(name, behaviours);
  counts.delete(name); // of a first try
  return name;
}

beforeAll(() => installClaude(), 600_000);
beforeAll(async () => {
  api = await startMessagesApi();
  api.behave = (request) => {
    const name = promptOf(request);
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    return plays.get(name)?.[count] ?? plays.get(name)?.at(-1) ?? says('What?');
  };
  const env = { MODEL_API_MAX_CONCURRENT: `${concurrent}`, MODEL_API_LIVE_SESSIONS: '4', MODEL_API_STANDBY: '2' };
  service = await startWithClaude(api, { env });
});
afterAll(async () => {
  await service.stop();
  await api.close();
});

describe('A message of the model', () => {
  const answers = new Map<string, DoorAnswer>();
  const answerTo = async ({ name, cell, manner }: (typeof asked)[number]) => {
    const text = prompt(name, messageFor(cell), second);
    return askDoor(service.url, manner.door, text, manner.isStreamed);
  };

  beforeAll(async () => {
    const left = [...asked];
    const work = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift())
        answers.set(next.name, await answerTo(next));
    };
    await Promise.all(Array.from({ length: concurrent }, work));
  }, 110_000);

  it.each(asked)('ends its answer as the table defines: $name', async (question) => {
    const answer = answers.get(question.name) ?? (await answerTo(question)); // a second try asks again
    answers.delete(question.name);
    expect(answer).toEqual(answerFor(question.cell, question.manner));
  });

  it('frees its slot', async () => {
    await until(async () => slotsUsed(await service.get('/status')) === 0, 'all slots to be free');
  });

  it('leaves the process waiting for the results of calls, for any stop reason', async () => {
    const text = prompt('live', endsFor('end_turn', contents.calls()), says('Noted.'));
    const client = new ToolClient(service, 'any', { model, tools: [note] });
    expect((await client.say(text)).calls).toHaveLength(1);
    expect(await client.answer(() => 'ok')).toMatchObject({ text: 'Noted.', session: 'live' });
  });
});

describe('A message whose connection is lost', () => {
  /** Requests a plain answer and a stream from an API that first responds with `first`, then with `next`. */
  async function answers(name: string, first: Behaviour, next: Behaviour): Promise<readonly DoorAnswer[]> {
    const [plain, streamed] = ['plain', 'streamed'].map((form) => prompt(`${name}, ${form}`, first, next));
    return Promise.all([
      askDoor(service.url, doors.chat, plain ?? '', false),
      askDoor(service.url, doors.messages, streamed ?? '', true),
    ]);
  }

  it('is completed in a stream by its repetition, if that starts with the text already sent', async () => {
    const all = await answers('repeated', breaksAfter('Hello,', ' A'), says('Hello, Ada'));
    expect(all.map(({ text }) => text)).toEqual(['Hello, Ada', 'Hello, Ada']);
    expect(all.map(({ finish }) => finish)).toEqual(['stop', 'end_turn']);
  });

  it('fails in a stream if the repetition differs', async () => {
    const all = await answers('differs', breaksAfter('Good day'), says('Hello, Ada'));
    expect(all.map(({ finish }) => finish)).toEqual(['stop', 'error']);
    expect(all[0]?.text).toBe('Hello, Ada');
  });

  it.each([
    ['a complete call', contents.calls()],
    ['a cut call', contents['a cut call']()],
  ])('has no calls: %s is an error', async (name, said) => {
    const all = await answers(`lost within ${name}`, breaksIn(said), says('Hello, Ada'));
    expect(all.map(({ status }) => status)).toEqual([500, 200]);
    expect(all.map(({ finish }) => finish)).toEqual(['error', 'error']);
    expect(all[0]?.text).toContain('answer_broken');
  });

  it('returns the text with which the model continued after the lost block', async () => {
    const all = await answers('continued', breaksIn(saysInBlocks('First.', 'Sec')), says(' Second.'));
    expect(all.map(({ finish }) => finish)).toEqual(['stop', 'error']);
    expect(all[0]?.text).toBe('First. Second.');
  });
});

describe('A request that the API rejects', () => {
  const sentence = 'messages.0: too odd at http://127.0.0.1:9/v1';

  it.each([
    ['/v1/chat/completions', { error: { type: 'invalid_request_error', code: 'request_refused' } }],
    ['/v1/messages', { error: { type: 'invalid_request_error' } }],
    ['/v1/responses', { error: { type: 'invalid_request_error' } }],
    ['/api/chat', {}],
  ])('is a 400 of %s that is not retried, with the message of the API', async (path, body) => {
    const door = doorList.find((each) => each.path === path) as Door;
    const text = prompt(`odd for ${path}`, refuses(400, 'invalid_request_error', sentence));
    const answer = await service.post(path, { ...door.body(text), stream: false });
    expect([answer.status, answer.body]).toMatchObject([400, body]);
    expect(answer.text).toContain('messages.0: too odd');
    expect(answer.text).not.toContain('127.0.0.1');
  });
});

describe('A stop sequence of whitespace', () => {
  it.each([
    ['chat', { stop: ['\n', '###'] }],
    ['messages', { stop_sequences: ['\n', '###'] }],
    ['ollama', { options: { stop: ['\n', '###'] } }],
  ] as const)('ends the answer of %s, and is not sent to the API', async (name, more) => {
    const text = prompt(`lines for ${name}`, says('One\nTwo'));
    const before = api.requests.length;
    const answers = [false, true].map((isStreamed) => askDoor(service.url, doors[name], text, isStreamed, more));
    for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ status: 200, text: 'One' });
    const sent = api.requests.slice(before).filter((request) => promptOf(request) === text);
    expect(sent.map(({ body }) => body.stop_sequences)).toEqual([['###'], ['###']]);
  });
});

describe('POST /ask', () => {
  it('reports an answer that ended at a limit, and fails for a refusal', async () => {
    const limited = prompt('limited', endsFor('max_tokens', says('Once upon')));
    const answer = await service.post('/ask', { prompt: limited });
    expect([answer.status, answer.body]).toMatchObject([200, { response: 'Once upon', incomplete: true }]);
    const refused = prompt('refused', endsFor('refusal', says('Well')));
    const failure = await service.post('/ask', { prompt: refused });
    expect([failure.status, failure.body]).toMatchObject([500, { error: 'cli_error', reason: 'refused' }]);
  });
});

function slotsUsed({ body }: Answer): number {
  return (body.slots as { readonly running: readonly unknown[] }).running.length;
}
