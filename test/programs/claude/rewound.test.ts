import { startWithClaude } from '../../support/agents/claude-service.js';
import {
  type MessagesApi,
  type MessagesRequest,
  says,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { Exposition } from '../../support/documents/exposition.js';
import { headersOf, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import type { Service } from '../../support/service/service.js';

const long = Array.from({ length: 400 }, (_, index) => `word${index}`).join(' ');
/** First questions and answers, whose export must prove that they are left. */
const firsts: Readonly<Record<string, readonly [question: string, answer: string]>> = {
  'a plain text': ['Hello', 'Good morning.'],
  'Markdown with headings, lists and emphasis': [
    'Explain *this*, please',
    '# Heading\n\nSome **bold**, *leaning* and `code` words.\n\n- one\n- two\n  - deeper\n\n1. first\n2. second\n\n> quoted',
  ],
  'a block of code': ['Write code', 'Here:\n\n```python\ndef f(x):\n    return x + 1\n```\n\nDone.'],
  'long lines': [long, `${long}\n\n${long}`],
  'other scripts': ['Größe? 你好', 'Übergröße, 你好世界, привет.'],
};

let api: MessagesApi;
let keys: NamedKeys;
let services: Readonly<Record<'on' | 'off', Service>>;

beforeAll(async () => {
  api = await startMessagesApi();
  api.behave = ({ body }) => {
    const question = JSON.stringify(body.messages.at(-1)?.content);
    const first = Object.values(firsts).find(([text]) => question.includes(JSON.stringify(text).slice(1, -1)));
    return says(first?.[1] ?? `Answer to ${body.messages.length} messages`);
  };
  keys = await writeNamedKeys();
  const env = { ...keys.env, MODEL_API_LIVE_SESSIONS: '8', MODEL_API_MAX_CONCURRENT: '2', MODEL_API_STANDBY: '1' };
  const start = (reuse: 'on' | 'off') => startWithClaude(api, { env: { ...env, MODEL_API_REUSE: reuse } });
  services = { on: await start('on'), off: await start('off') };
}, 600_000);
afterAll(async () => {
  await Promise.all(Object.values(services ?? {}).map((service) => service.stop()));
  await api.close();
  await keys[Symbol.asyncDispose]();
});

async function post(service: Service, path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
  const { status, text } = await service.post(path, body, headersOf('alice'));
  if (status >= 300) throw new Error(`${path}: ${status} ${text}`);
  return JSON.parse(text);
}

/** Sends messages in a conversation, each of which replaces the earlier one if it begins with "edited". */
async function talk(service: Service, messages: readonly string[]): Promise<MessagesRequest[]> {
  const before = api.requests.length;
  let id: unknown;
  let count = 0;
  for (const message of messages) {
    if (message.startsWith('edited')) {
      count -= 2;
      id = (await post(service, `/chat/${id}/fork`, { from: count })).conversation_id;
    }
    id = (await post(service, '/chat', { message, ...(id !== undefined && { conversation_id: id }) })).conversation_id;
    count += 2;
  }
  return api.requests.slice(before);
}

/** The body without the ids of the session. The CLI adds a digest of the prompt to its version. */
function shapeOf({ body }: MessagesRequest): string {
  return JSON.stringify({ ...body, metadata: null }).replace(/(cc_version=\d+\.\d+\.\d+)\.\w+/, '$1');
}

async function rewound(service: Service): Promise<number> {
  const { text } = await service.get('/metrics', headersOf('operator'));
  return new Exposition(text).value('questions_total{cli="claude",process="rewound"}');
}

describe('A conversation whose message is replaced', () => {
  it.each(Object.keys(firsts))('reaches the API like in a fresh process: after %s', async (name) => {
    const [question = ''] = firsts[name] ?? [];
    const messages = [question, 'second', 'edited', 'edited again', 'third', 'fourth', 'edited fourth'];
    const count = await rewound(services.on);
    const made = (await talk(services.on, messages)).map(shapeOf);
    const fresh = (await talk(services.off, messages)).map(shapeOf);
    expect(made).toEqual(fresh);
    expect(await rewound(services.on)).toBe(count + 3);
  });

  it('can be rewound to a message that was replayed', async () => {
    const history = ['one', 'two', 'three'].flatMap((content) => [
      { role: 'user', content },
      { role: 'assistant', content: `${content} it is` },
    ]);
    const ask = async (service: Service, count: number, content: string) => {
      const before = api.requests.length;
      await post(service, '/v1/chat/completions', {
        messages: [...history.slice(0, count), { role: 'user', content }],
      });
      return api.requests.slice(before).map(shapeOf);
    };
    const count = await rewound(services.on);
    await ask(services.on, 6, 'four');
    const made = await ask(services.on, 4, 'another three');
    expect(made).toEqual(await ask(services.off, 4, 'another three'));
    expect(await rewound(services.on)).toBe(count + 1);
  });
});
