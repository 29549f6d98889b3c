import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Service, script, startService } from '../service/service.js';

/** Model CLI whose account state a test sets; see the fixture has-an-account.pl. */
export class Account {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async set(state: string): Promise<void> {
    await writeFile(join(this.folder, 'next'), state);
    await rename(join(this.folder, 'next'), join(this.folder, 'state'));
  }

  /** Returns the number of programs that were started for jobs, including standby programs. */
  async starts(): Promise<number> {
    const lines = await readFile(join(this.folder, 'starts'), 'utf8').catch(() => '');
    return lines.split('\n').length - 1;
  }

  start(env: Readonly<Record<string, string>> = {}): Promise<Service> {
    const command = script('has-an-account.pl', this.folder);
    return startService({ env: { MODEL_API_CLI: 'claude', MODEL_API_CLI_COMMAND: command, ...env } });
  }
}
