import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Service, script, startService } from './service.js';

/** A model CLI whose account is worth what the test says: see the fixture. */
export class Account {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async set(state: string): Promise<void> {
    await writeFile(join(this.folder, 'next'), state);
    await rename(join(this.folder, 'next'), join(this.folder, 'state'));
  }

  /** How many programs were started for jobs, present and future ones. */
  async starts(): Promise<number> {
    const lines = await readFile(join(this.folder, 'starts'), 'utf8').catch(() => '');
    return lines.split('\n').length - 1;
  }

  start(env: Readonly<Record<string, string>> = {}): Promise<Service> {
    const command = script('has-an-account.pl', this.folder);
    return startService({ env: { MODEL_API_CLI: 'claude', MODEL_API_CLI_COMMAND: command, ...env } });
  }
}
