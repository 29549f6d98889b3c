import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import { settleAgent } from '../../support/agents/coding-agents.js';
import {
  type MessagesApi,
  type MessagesRequest,
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

  it.each([
    ['in one process', { MODEL_API_LIVE_SESSIONS: '4' }],
    ['in a new process for each turn', { MODEL_API_LIVE_SESSIONS: '0' }],
    ['with a token, in one process', { MODEL_API_LIVE_SESSIONS: '4', ...token }],
  ])(
    'serves a session with tools through the service like one of the CLI alone: %s',
    async (name, env) => {
      await using api = await startMessagesApi();
      await using service = await startWithClaude(api, { env });
      const alone = await cacheUseIn(api, api.url);
      const relayed = await cacheUseIn(api, service.url);
      const ratio = relayed.share / alone.share;
      const shown = ({ share, total }: CacheUse) => `${(100 * share).toFixed(2)} % of ${Math.round(total / 1000)} KB`;
      process.stderr.write(`${name}: ${shown(relayed)} from the cache, alone ${shown(alone)}: ${ratio.toFixed(4)}\n`);
      expect(relayed.changes).toEqual([]);
      expect(ratio).toBeGreaterThanOrEqual(0.98);
    },
    limitMs,
  );

  it(
    'serves the start of a session with a token in a new process for each turn, but not the rest',
    async () => {
      await using api = await startMessagesApi();
      await using service = await startWithClaude(api, { env: { MODEL_API_LIVE_SESSIONS: '0', ...token } });
      const { changes, share } = await cacheUseIn(api, service.url);
      process.stderr.write(`with a token, in a new process for each turn: ${(100 * share).toFixed(2)} %\n`);
      for (const change of changes) expect(change).toContain('# Environment'); // the CLI adds it to the newest message
      expect(changes.length).toBeGreaterThan(0);
    },
    limitMs,
  );
});
