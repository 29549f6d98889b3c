import { setTimeout as sleep } from 'node:timers/promises';
import { Exposition } from '../../support/documents/exposition.js';
import { headersOf, type KeyHolder, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, script, startWithProgram } from '../../support/service/service.js';

const holders: readonly KeyHolder[] = ['operator', 'alice', 'bob'];
const turns = 150;

let keys: NamedKeys;
let service: Service;

beforeAll(async () => {
  keys = await writeNamedKeys();
  const env = { ...keys.env, MODEL_API_CLI: 'claude', MODEL_API_LIVE_SESSIONS: '8', MODEL_API_MAX_CONCURRENT: '4' };
  service = await startWithProgram(script('rewinds.pl'), env);
});
afterAll(async () => {
  await service.stop();
  await keys[Symbol.asyncDispose]();
});

/** Answer of the program: its process id, and all texts in its context. */
interface Reply {
  readonly id: string;
  readonly text: string;
  readonly pid: string;
  readonly context: string;
}

async function chat(holder: KeyHolder, message: string, id: string | null = null): Promise<Reply> {
  const body = { message, ...(id !== null && { conversation_id: id }) };
  const { status, body: answer } = await service.post('/chat', body, headersOf(holder));
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(answer)}`);
  const text = String(answer.response);
  const [pid = '', , , , ...context] = text.split('|');
  return { id: String(answer.conversation_id), text, pid, context: context.join('|') };
}

async function fork(holder: KeyHolder, id: string, from?: number): Promise<string> {
  const { status, body } = await service.post(
    `/chat/${id}/fork`,
    from === undefined ? {} : { from },
    headersOf(holder),
  );
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`);
  return String(body.conversation_id);
}

async function complete(holder: KeyHolder, texts: readonly string[]): Promise<Reply> {
  const messages = texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }));
  const { status, body } = await service.post('/v1/chat/completions', { messages }, headersOf(holder));
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  const { choices } = body as unknown as {
    readonly choices: readonly { readonly message: { readonly content: string } }[];
  };
  const text = choices[0]?.message.content ?? '';
  const [pid = '', , , , ...context] = text.split('|');
  return { id: '', text, pid, context: context.join('|') };
}

async function rewound(): Promise<number> {
  const { text } = await service.get('/metrics', headersOf('operator'));
  return new Exposition(text).value('questions_total{cli="claude",process="rewound"}');
}

/** Begins a conversation with two turns. The second message may be a lie. */
async function begin(holder: KeyHolder, second = 'second') {
  const one = await chat(holder, `first of ${holder} ${second}`);
  return { one, two: await chat(holder, second, one.id) };
}

describe('A conversation whose message is replaced', () => {
  it('goes on in the process of its original, which has only the messages before', async () => {
    const count = await rewound();
    const { one, two } = await begin('alice');
    const version = await chat('alice', 'second, edited', await fork('alice', one.id, 2));
    expect(version.pid).toBe(two.pid);
    expect(version.context).toBe(`first of alice second|${one.text}|second, edited`);
    const again = await chat('alice', 'second, edited', await fork('alice', version.id, 2));
    expect([again.pid, again.context]).toEqual([two.pid, version.context]);
    expect(await rewound()).toBe(count + 2);
    const next = await chat('alice', 'third', again.id);
    expect([next.pid, next.context]).toEqual([two.pid, `${again.context}|${again.text}|third`]);
  });

  it('leaves the original as it is, in another process', async () => {
    const { one, two } = await begin('bob');
    await chat('bob', 'second, edited', await fork('bob', one.id, 2));
    const next = await chat('bob', 'third', one.id);
    expect(next.pid).not.toBe(two.pid);
    expect(next.context).toBe(`first of bob second|${one.text}|second|${two.text}|third`);
  });

  it('leaves the process to the original if it is a copy of the whole conversation', async () => {
    const { one, two } = await begin('bob');
    const branch = await chat('bob', 'third of the branch', await fork('bob', one.id));
    const next = await chat('bob', 'third', one.id);
    expect([next.pid === two.pid, branch.pid === two.pid]).toEqual([true, false]);
    expect(branch.context).toBe(`first of bob second|${one.text}|second|${two.text}|third of the branch`);
  });

  it('is also that of a client which sends the whole history', async () => {
    const count = await rewound();
    const one = await complete('alice', ['first']);
    const two = await complete('alice', ['first', one.text, 'second']);
    const edited = await complete('alice', ['first', one.text, 'second, edited']);
    expect([edited.pid, edited.context]).toEqual([two.pid, `first|${one.text}|second, edited`]);
    expect(await rewound()).toBe(count + 1);
  });

  it.each(['lie-keeps', 'lie-more', 'lie-other', 'lie-late', 'lie-twice', 'lie-delta'])(
    'ends a program that lies: %s',
    async (lie) => {
      const { one, two } = await begin('operator', lie);
      await chat('operator', 'third', one.id);
      const version = await chat('operator', 'edited', await fork('operator', one.id, 2));
      await sleep(50); // a second answer or a delta after the proof comes a moment later
      const next = await chat('operator', 'next', version.id);
      expect(version.context).toBe(`first of operator ${lie}|${one.text}|edited`);
      expect(next.context).toBe(`${version.context}|${version.text}|next`);
      expect(next.pid).not.toBe(two.pid);
    },
  );

  it(`never sees a message of another version: ${turns} turns with edits by three clients at once`, async () => {
    const faults: string[] = [];
    const count = await rewound();
    const talk = async (holder: KeyHolder, seed: number) => {
      let [id, texts]: [string | null, readonly string[]] = [null, []];
      for (let turn = 0; turn < turns / holders.length; turn++) {
        const choice = (turn * 7 + seed * 5 + (turn >> 2)) % 9;
        const shared = Math.max(2, texts.length - 2 * (choice % 3 === 0 ? 1 : 2));
        if (choice === 8 || texts.length > 8) [id, texts] = [null, []];
        else if (id !== null && choice < 5 && texts.length > 2)
          [id, texts] = [await fork(holder, id, shared), texts.slice(0, shared)];
        const message = `canary ${holder} ${turn}`;
        const reply: Reply = await chat(holder, message, id);
        if (reply.context !== [...texts, message].join('|')) faults.push(`${message}: ${reply.context}`);
        [id, texts] = [reply.id, [...texts, message, reply.text]];
      }
    };
    await Promise.all(holders.map(talk));
    expect(faults).toEqual([]);
    expect(await rewound()).toBeGreaterThan(count + turns / 6);
  });
});
