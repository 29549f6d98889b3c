import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommandArguments, CommandContext } from '../../../../src/command/base/command.js';
import { exportData, showRetention } from '../../../../src/features/retention/command.js';
import type { Retention } from '../../../../src/features/retention/shared.js';
import { paintFor } from '../../../../src/shared/text/paint.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

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
  is_stored: true,
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

describe('prompt-relay export', () => {
  const data = [
    '{"kind":"export"}',
    '{"kind":"file","id":"file-1","name":"../../evil"}',
    `{"kind":"file_data","id":"file-1","base64":"${Buffer.from('bytes').toString('base64')}"}`,
    '{"kind":"file_data","id":"../../evil","base64":"YQ=="}',
  ];
  const sha256 = createHash('sha256')
    .update(data.map((line) => `${line}\n`).join(''))
    .digest('hex');
  const end = JSON.stringify({ kind: 'end', counts: { file: 1 }, sha256 });

  /** Writes these lines to the folder `mine`. */
  async function write(path: string, lines: readonly string[]) {
    const shown: string[] = [];
    const client = {
      lines: async function* () {
        yield* lines;
      },
    };
    const terminal = { writeLines: async (texts: readonly string[]) => void shown.push(...texts) };
    const context = { terminal, createClient: async () => client } as unknown as CommandContext;
    const value = (name: string) => (name === 'to' ? join(path, 'mine') : undefined);
    const args = { positionals: [], value, values: () => [], has: () => false };
    return { exitCode: await exportData(args as CommandArguments, context), shown };
  }

  it('writes lines and files to a new folder for its owner alone, under names that no client has chosen', async () => {
    await using folder = await temporaryFolder();
    const { exitCode, shown } = await write(folder.path, [...data, end]);
    expect([exitCode, shown[1]]).toEqual([0, `SHA-256 ${sha256}`]);
    const to = join(folder.path, 'mine');
    expect(await readdir(folder.path)).toEqual(['mine']);
    expect((await readdir(to)).toSorted()).toEqual(['data.jsonl', 'files']);
    expect(await readdir(join(to, 'files'))).toEqual(['file-1']);
    expect(await readFile(join(to, 'files', 'file-1'), 'utf8')).toBe('bytes');
    expect((await stat(join(to, 'data.jsonl'))).mode & 0o777).toBe(0o600);
    await expect(write(folder.path, [...data, end])).rejects.toThrow('it already exists');
  });

  it('fails if the export has been cut off or changed', async () => {
    await using folder = await temporaryFolder();
    await expect(write(join(folder.path, ''), [...data, '{"kind":"fi'])).rejects.toThrow('is not complete');
    await using other = await temporaryFolder();
    await expect(write(other.path, [...data.slice(1), end])).rejects.toThrow('SHA-256 differs');
  });
});
