import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { root } from './sources.js';
import { until } from './until.js';

const preload = join(root, 'test', 'support', 'fixtures', 'coverage-on-signal.cjs');

/** Variables that make each process of a service report its executed functions whenever `Executions` requests it. */
export function countedIn(folder: string): Record<string, string> {
  return { NODE_V8_COVERAGE: folder, NODE_OPTIONS: `--require ${preload}` };
}

const report = z.object({
  result: z.array(
    z.object({
      url: z.string(),
      functions: z.array(
        z.object({
          functionName: z.string(),
          ranges: z.tuple([z.object({ startOffset: z.number(), count: z.number() })]).rest(z.unknown()),
        }),
      ),
    }),
  ),
});

/** Finds the files of src that some processes execute. */
export class Executions {
  readonly #folder: string;
  readonly #pids: readonly number[];

  /** `folder`: the folder given to `countedIn`. */
  constructor(folder: string, pids: readonly number[]) {
    this.#folder = folder;
    this.#pids = pids;
  }

  /** Resolves with the files below dist whose functions were called while `action` ran. */
  async during(action: () => Promise<unknown>): Promise<string[]> {
    await this.#take();
    await action();
    const files = await this.#take();
    const names = files.flatMap(({ result }) =>
      result
        // A function at offset 0 is the top level of a script, which runs when the script is loaded.
        .filter(({ functions }) => functions.some(({ ranges: [whole] }) => whole.startOffset > 0 && whole.count > 0))
        .map(({ url }) => url),
    );
    const start = pathToFileURL(join(root, 'dist', 'src')).href;
    return [
      ...new Set(names.filter((url) => url.startsWith(start)).map((url) => url.slice(start.length + 1))),
    ].toSorted();
  }

  /** Collects the functions that ran since the last call. */
  async #take() {
    await rm(this.#folder, { recursive: true, force: true });
    await mkdir(this.#folder, { recursive: true });
    for (const pid of this.#pids) process.kill(pid, 'SIGPWR');
    const written = async () => {
      const files = (await readdir(this.#folder)).filter((name) => name.endsWith('.done'));
      return files.length === this.#pids.length;
    };
    await until(written, 'the reports of all processes');
    const files = (await readdir(this.#folder)).filter((name) => name.endsWith('.json'));
    return Promise.all(
      files.map(async (name) => report.parse(JSON.parse(await readFile(join(this.#folder, name), 'utf8')))),
    );
  }
}
