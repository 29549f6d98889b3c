import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { installFrom } from '../../support/clients/sdk-client.js';
import { pixel } from '../../support/clients/sdk-lab.js';
import { type Service, startService } from '../../support/service/service.js';

/** Folder with the packages and the program of the grid. */
const folder = 'grid';
const providers = ['anthropic', 'openai', 'openai.chat', 'compatible'];

interface Cell {
  readonly provider: string;
  readonly purpose: string;
  readonly value?: unknown;
  readonly failure?: string;
}

/** Result without thoughts: the chat format of OpenAI lacks them. */
const thoughtless = { text: expect.stringMatching(/\S/) };

const expected = {
  text: expect.stringContaining('Ada'),
  stream: expect.stringContaining('Ada'),
  object: { name: expect.any(String), age: expect.any(Number) },
  tools: { text: expect.stringContaining('noted Ada'), results: ['noted Ada'] },
  thinking: { text: expect.stringMatching(/\S/), thought: 'of Ada' },
  images: expect.stringContaining('image/png, 70 bytes'),
};

let demo: Service;
let packages: { readonly node: string; readonly clients: string };

beforeAll(async () => {
  packages = await installFrom(folder);
  demo = await startService({
    env: { MODEL_API_WORKERS: '1', MODEL_API_LIVE_SESSIONS: '16', MODEL_API_MODEL_ALIASES: 'o3=eliza' },
  });
}, 600_000);
afterAll(() => demo?.stop());

async function ask(generation: string): Promise<readonly Cell[]> {
  const links = ['--preserve-symlinks', '--preserve-symlinks-main'];
  const args = [...links, `${packages.clients}/ask.mjs`, demo.url, generation, pixel];
  const { stdout } = await promisify(execFile)(packages.node, args, { timeout: 60_000 });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Cell);
}

describe.each(['4', '5', '6', '7'])('AI SDK %s', (generation) => {
  it('receives texts, streams, objects, tool calls, thoughts and images with each provider', async () => {
    const cells = await ask(generation);
    const isChat = (provider: string) => provider === 'openai.chat' || (provider === 'openai' && generation === '4');
    const whole = providers.flatMap((provider) =>
      Object.entries({ ...expected, ...(isChat(provider) && { thinking: thoughtless }) }).map(([purpose, value]) => ({
        ...{ provider, purpose, value },
      })),
    );
    expect(cells).toMatchObject(whole);
  }, 70_000);
});
