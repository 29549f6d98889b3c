import type { CommandArguments, CommandContext } from '../../../../src/command/base/command.js';
import { runLend } from '../../../../src/features/lent-keys/command.js';
import { paintFor } from '../../../../src/shared/text/paint.js';

const view = { id: '8f2a', client: 'key ada', made_at: '2027-01-01T10:00:00Z', expires_at: '2027-01-01T14:00:00Z' };

/** Runs the action against a service that records its requests. */
async function run(values: Readonly<Record<string, string | true>>, id?: string) {
  const [lines, messages, sent]: [string[], string[], unknown[]] = [[], [], []];
  const terminal = {
    paint: paintFor(false),
    writeLine: async (line: string) => void lines.push(line),
    writeLines: async (shown: readonly string[]) => void lines.push(...shown),
    writeJson: async (body: object) => void lines.push(JSON.stringify(body)),
    sentences: (text: string) => void messages.push(text),
  };
  const client = {
    postBody: async (...request: unknown[]) => sent.push(request.slice(0, 2)) && { key: 'pr_lent', ...view },
    delete: async (path: string) => sent.push(path) && { success: true, id: view.id, request_id: 'r' },
    getState: async (path: string) => sent.push(path) && { keys: [view], request_id: 'r' },
  };
  const args = { positionals: [], value: (name: string) => values[name], has: (name: string) => values[name] === true };
  const context = { terminal, createClient: async () => client } as unknown as CommandContext;
  const code = await runLend(id, args as unknown as CommandArguments, context);
  return { code, lines, messages, sent };
}

describe('prompt-relay keys lend', () => {
  it('prints only the key to stdout, so that a script can use it', async () => {
    expect(await run({ for: '4h' })).toEqual({
      ...{ code: 0, lines: ['pr_lent'], sent: [['/lent-keys', { seconds: 14_400 }]] },
      messages: ['The key 8f2a acts for key ada until 2027-01-01T14:00:00Z.'],
    });
  });

  it.each([
    ['90m', 5400],
    ['45s', 45],
    ['2d', 172_800],
  ])('understands the time %s', async (time, seconds) => {
    expect((await run({ for: time })).sent).toEqual([['/lent-keys', { seconds }]]);
  });

  it.each(['', '4', '0h', '4 h', '-1h', '1.5h', '4H', '1h30m', '9999999999s'])(
    'refuses the time "%s"',
    async (time) => {
      await expect(run({ for: time })).rejects.toMatchObject({ exitCode: 64 });
    },
  );

  it('ends the key with this id, or the one with which it is called', async () => {
    expect((await run({ end: true }, '8f/2a')).sent).toEqual(['/lent-keys/8f%2F2a']);
    expect((await run({ end: true })).sent).toEqual(['/lent-keys/current']);
  });

  it('lists the lent keys', async () => {
    expect((await run({ list: true })).lines).toEqual(['8f2a  until 2027-01-01T14:00:00Z  key ada']);
    expect(JSON.parse((await run({ list: true, json: true })).lines[0] ?? '')).toMatchObject({ keys: [view] });
  });

  it('needs to know what to do, exactly', async () => {
    await expect(run({})).rejects.toMatchObject({ exitCode: 64 });
    await expect(run({ for: '4h', end: true })).rejects.toMatchObject({ exitCode: 64 });
    await expect(run({ for: '4h' }, 'ada')).rejects.toMatchObject({ exitCode: 64 });
  });
});
