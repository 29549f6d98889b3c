import type { CommandArguments, CommandContext } from '../../../../src/command/base/command.js';
import { showRetention } from '../../../../src/features/retention/command.js';
import type { Retention } from '../../../../src/features/retention/shared.js';
import { paintFor } from '../../../../src/shared/text/paint.js';

const conversations: Retention['data'][number] = {
  ...{
    kind: 'conversations',
    content: 'messages',
    place: 'file',
    kept_seconds: 60,
    kept: '1 min after its last activity',
  },
  ...{ readers: ['client', 'host'], export: 'GET /chat/{id}/messages', deletion: 'DELETE /chat/{id}', variables: [] },
};
const body: Retention = {
  store: 'sqlite',
  data: [conversations, { ...conversations, kind: 'files', place: 'nowhere' }],
  provider: 'Ask the provider.',
};

/** Runs the command against a service with this answer. */
async function run(answer: Retention) {
  const lines: string[] = [];
  const paths: string[] = [];
  const terminal = {
    paint: paintFor(false),
    writeLines: async (shown: readonly string[]) => void lines.push(...shown),
  };
  const getState = async (path: string) => {
    paths.push(path);
    return answer;
  };
  const args = { positionals: [], value: () => undefined, values: () => [], has: () => false };
  const context = { terminal, createClient: async () => ({ getState }) } as unknown as CommandContext;
  const exitCode = await showRetention(args as CommandArguments, context);
  return { exitCode, lines, paths };
}

describe('prompt-relay retention', () => {
  it('shows each kind of data that is stored, and names the kinds that are not', async () => {
    const { exitCode, lines, paths } = await run(body);
    expect([exitCode, paths]).toEqual([0, ['/retention']]);
    expect(lines).toEqual([
      ...['The store is sqlite.', '', 'conversations', '  what          messages', '  where         file'],
      ...['  how long      1 min after its last activity', '  who reads it  client, host'],
      ...['  export        GET /chat/{id}/messages', '  delete        DELETE /chat/{id}'],
      ...['', 'Not stored with these settings: files.', '', 'Ask the provider.'],
    ]);
  });

  it('leaves out what there is not, and lets no answer control the terminal', async () => {
    const { lines } = await run({
      ...body,
      data: [{ ...conversations, content: 'a\u001b[2Jb', export: null, deletion: null }],
    });
    expect(lines.join('\n')).not.toContain('\u001b');
    expect(lines.filter((line) => /export|delete|Not stored/.test(line))).toEqual([]);
  });
});
