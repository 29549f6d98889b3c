import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import { settleAgent } from '../../support/agents/coding-agents.js';
import {
  type MessagesApi,
  type MessagesRequest,
  refuses,
  says,
  saysAndCalls,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { type CacheUse, cacheUseOf } from '../../support/agents/prompt-cache.js';

const model = 'claude-sonnet-5';
/** Turns of the model in a session; CACHE_TURNS=60 for the figures of docs/clis.md. */
const turns = Number(process.env.CACHE_TURNS ?? 12);
const limitMs = turns * 10_000;
/** Messages of the user in a session: Claude Code starts anew for each. */
const messages = 3;

/** Replaces the API key: the CLI then adds more texts of its own. */
const token = { ANTHROPIC_API_KEY: '', MODEL_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test' };

function resultsIn({ body }: MessagesRequest): number {
  return JSON.stringify(body.messages).split('"tool_result"').length - 1;
}

function textOf(text: string) {
  return { type: 'text', text };
}

/** Runs a session of Claude Code with its tools, which asks this address. */
async function cacheUseIn(api: MessagesApi, url: string): Promise<CacheUse> {
  await using client = await settleAgent('Claude Code', url, model);
  api.requests.length = 0;
  const path = join(client.work, 'notes.txt');
  await writeFile(path, 'A note of some words.\n'.repeat(40));
  const rounds = turns / messages - 1;
  api.behave = (request) => {
    if ((request.body.tools ?? []).length === 0) return says('A title');
    const results = resultsIn(request);
    const asked = JSON.stringify(request.body.messages).split('Read the notes').length - 1;
    if (results >= rounds * asked) return says(`That was message ${asked}.`);
    const input = { file_path: path, offset: results + 1, limit: 20 };
    return saysAndCalls(`Round ${results}.`, { name: 'Read', input });
  };
  const said = Array.from({ length: messages }, (_, at) => `Read the notes, please (${at}).`);
  const answers = await client.chat(...said);
  expect(answers).toEqual(said.map((_, at) => expect.stringContaining(`That was message ${at + 1}.`)));
  return cacheUseOf(api.requests.filter(({ body }) => (body.tools ?? []).length > 0));
}

describe('The prompt cache of the API', () => {
  beforeAll(() => installClaude(), 600_000);

  /** The other two combinations, for the figures. */
  const more = [
    ['in a new process for each turn', { MODEL_API_LIVE_SESSIONS: '0' }, []],
    ['with a token, in one process', { MODEL_API_LIVE_SESSIONS: '4', ...token }, []],
  ] as const;
  let alone: CacheUse | null = null;

  it.each([
    ['in one process', { MODEL_API_LIVE_SESSIONS: '4' }, []],
    // The CLI describes the host after the newest message, behind the breakpoint of the client.
    ['with a token, in a new process for each turn', { MODEL_API_LIVE_SESSIONS: '0', ...token }, ['# Environment']],
    ...(process.env.CACHE_TURNS === undefined ? [] : more),
  ] as const)(
    'serves a session with tools through the service like one of the CLI alone: %s',
    async (name, env, moved) => {
      await using api = await startMessagesApi();
      await using service = await startWithClaude(api, { env });
      alone ??= await cacheUseIn(api, api.url);
      const relayed = await cacheUseIn(api, service.url);
      const ratio = relayed.share / alone.share;
      const shown = ({ share, total }: CacheUse) => `${(100 * share).toFixed(2)} % of ${Math.round(total / 1000)} KB`;
      process.stderr.write(`${name}: ${shown(relayed)} from the cache, alone ${shown(alone)}: ${ratio.toFixed(4)}\n`);
      expect(relayed.changes.filter((change) => !moved.some((text: string) => change.includes(text)))).toEqual([]);
      expect(api.faults).toEqual([]);
      expect(ratio).toBeGreaterThanOrEqual(0.98);
    },
    limitMs,
  );

  it.each([
    ['an API key', {}],
    ['a token', token],
  ])('stores the prompt up to the breakpoint of the client, with %s', async (_name, env) => {
    await using api = await startMessagesApi();
    await using service = await startWithClaude(api, { env });
    const data = 'A long text. '.repeat(1000);
    const source = { type: 'text', media_type: 'text/plain', data };
    const ask = async (messages: readonly object[]) => {
      const answer = await service.post('/v1/messages', { model, max_tokens: 4000, messages });
      expect([answer.status, answer.headers.get('x-ignored-parameters')]).toEqual([200, null]);
      return api.requests.at(-1) as MessagesRequest;
    };
    for (const cache_control of [{ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' }, null]) {
      const about = (question: string) => {
        const text = textOf(`Breakpoint: ${JSON.stringify(cache_control)}`);
        return { role: 'user', content: [text, { type: 'document', source, cache_control }, textOf(question)] };
      };
      const first = await ask([about('Why?')]);
      const second = await ask([about('How?')]);
      expect(cacheUseOf([first, second]).read > data.length).toBe(cache_control !== null);
      // A further turn in the same process has the breakpoint of the first one, too.
      const third = await ask([about('How?'), { role: 'assistant', content: 'Hello, world' }, about('When?')]);
      for (const { body } of cache_control === null ? [] : [second, third])
        expect(new Set(JSON.stringify(body).match(/"cache_control":\{[^}]*\}/g))).toEqual(
          new Set([`"cache_control":${JSON.stringify(cache_control)}`]),
        );
    }
    expect(api.faults).toEqual([]);
  });

  it('is asked again without the breakpoint of the client if the API counts too many', async () => {
    await using api = await startMessagesApi();
    await using service = await startWithClaude(api);
    const countIn = ({ body }: MessagesRequest) => JSON.stringify(body).split('"cache_control"').length - 1;
    const tooMany = 'A maximum of 4 blocks with cache_control may be provided. Found 5.';
    api.behave = (request) => (countIn(request) > 3 ? refuses(400, 'invalid_request_error', tooMany) : says('Fine'));
    const content = [{ ...textOf('A long text.'), cache_control: { type: 'ephemeral' } }, textOf('Why?')];
    for (const expected of [[4, 3], [3]]) {
      api.requests.length = 0;
      const body = { model, max_tokens: 4000, system: 'Be brief.', messages: [{ role: 'user', content }] };
      const answer = await service.post('/v1/messages', body);
      expect([answer.status, answer.headers.get('x-ignored-parameters')]).toEqual([
        200,
        'messages.content.cache_control',
      ]);
      expect([...new Set(api.requests.map(countIn))]).toEqual(expected); // the CLI itself may repeat a request
    }
  });

  it('serves replays with a token also to a client that sets no breakpoints', async () => {
    const shares: number[] = [];
    for (const env of [{}, token]) {
      await using api = await startMessagesApi();
      await using service = await startWithClaude(api, { env: { MODEL_API_LIVE_SESSIONS: '0', ...env } });
      const messages: object[] = [];
      for (let turn = 0; turn < 8; turn++) {
        messages.push({ role: 'user', content: `${turn} ${'A long text. '.repeat(2000)}` });
        const { status, body } = await service.post('/v1/chat/completions', { model, messages });
        expect(status).toBe(200);
        const [{ message }] = body.choices as [{ readonly message: object }];
        messages.push(message);
      }
      expect(api.faults).toEqual([]);
      shares.push(cacheUseOf(api.requests).share);
    }
    const [withKey = 0, withToken = 0] = shares;
    expect(withToken / withKey).toBeGreaterThanOrEqual(0.95);
  });
});
