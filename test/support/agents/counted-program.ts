import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../basics/folder.js';

/** Model CLI that answers with its prompt, and records each prompt in a file when it begins. */
export class CountedProgram implements AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  readonly #folder: TemporaryFolder;

  private constructor(folder: TemporaryFolder, seconds: number) {
    this.#folder = folder;
    const command = `sh -c 'tee -a ${join(folder.path, 'begun')}; sleep ${seconds}'`;
    this.env = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: command };
  }

  /** `seconds`: duration of each job. */
  static async make(seconds: number): Promise<CountedProgram> {
    const folder = await temporaryFolder();
    await writeFile(join(folder.path, 'begun'), '');
    return new CountedProgram(folder, seconds);
  }

  /** Returns how often each prompt was begun. A prompt ends with its line feed. */
  async begun(): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    for (const prompt of (await readFile(join(this.#folder.path, 'begun'), 'utf8')).split('\n').slice(0, -1)) {
      counts.set(prompt, (counts.get(prompt) ?? 0) + 1);
    }
    return counts;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder[Symbol.asyncDispose]();
  }
}
