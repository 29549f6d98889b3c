import { stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '../../../../src/command/base/client.js';
import type { CommandArguments, CommandContext } from '../../../../src/command/base/command.js';
import { printUse } from '../../../../src/command/base/file-in-use.js';
import { systemClock, timestamp } from '../../../../src/shared/clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';

let folder: TemporaryFolder;
let path: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder.path, 'keys');
  await writeFile(path, 'text');
  await utimes(path, 5, 5);
});
afterEach(() => folder[Symbol.asyncDispose]());

/** Returns the line about a service that sends these files, or none. */
async function lineFor(files: readonly object[] | undefined): Promise<string> {
  const client = { url: 'http://relay', getQuickly: async () => ({ files }) } as unknown as Client;
  const lines: string[] = [];
  // Later than the limit of the wait, so that the command asks once.
  const clock = { ...systemClock, now: () => Number.POSITIVE_INFINITY };
  const context = {
    terminal: { sentences: (text: string) => lines.push(text) },
    clock,
    createClient: async () => client,
  };
  const args = { value: () => undefined } as unknown as CommandArguments;
  const file = { name: 'keys_file', variable: 'MODEL_API_KEYS_FILE', event: 'keys_rejected' } as const;
  await printUse(file, path, args, context as unknown as CommandContext);
  return lines.join('\n');
}

describe('The line about the use of a file', () => {
  it('is unknown for a service of an older version, which sends no files', async () => {
    expect(await lineFor(undefined)).toMatch(/^Whether the service at http:\/\/relay uses this file is unknown/);
    expect(await lineFor([])).toContain('reads no such file');
  });

  it('is not misled by a copy that has the time of the text', async () => {
    const { ctimeMs } = await stat(path, { bigint: true });
    const used = { name: 'keys_file', faults: 0 };
    expect(await lineFor([{ ...used, modified_at: timestamp(Number(ctimeMs)) }])).toContain('uses this file');
    expect(await lineFor([{ ...used, modified_at: timestamp(5000) }])).toContain('does not use this file');
  });
});
