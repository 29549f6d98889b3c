import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../basics/folder.js';
import { until } from '../basics/until.js';
import { untilJobs } from '../jobs/jobs.js';
import { type Answer, type Service, script, startWithProgram, twoWorkers } from '../service/service.js';

const keys = { app: 'pr_the-key-of-an-application', other: 'pr_the-key-of-another-client' } as const;
export type SubClientKey = keyof typeof keys;

/** Service with a key that has sub-clients; each job records its start, then waits for a gate. */
export class SubClientsHouse implements AsyncDisposable {
  readonly service: Service;
  readonly #path: (name: string) => string;
  readonly #close: () => Promise<void>;

  private constructor(service: Service, path: (name: string) => string, close: () => Promise<void>) {
    this.service = service;
    this.#path = path;
    this.#close = close;
  }

  static async start(options: string, env: Readonly<Record<string, string>> = {}): Promise<SubClientsHouse> {
    const folder = await temporaryFolder();
    const path = (name: string) => join(folder.path, name);
    const lines = [`app:sha256:${digestOf(keys.app)}:subclients${options}`, `other:sha256:${digestOf(keys.other)}`];
    await writeFile(path('keys'), lines.join('\n'), { mode: 0o600 });
    const program = script('takes-turns.pl', path('order'), path('gate'));
    const service = await startWithProgram(program, {
      ...twoWorkers,
      MODEL_API_KEYS_FILE: path('keys'),
      MODEL_API_DEFAULT_MODEL: 'turns',
      MODEL_API_MAX_CONCURRENT: '1',
      MODEL_API_QUEUE_TIMEOUT_MS: '100000',
      ...env,
    });
    return new SubClientsHouse(service, path, async () => folder[Symbol.asyncDispose]());
  }

  /**
   * Sends a prompt for a user of the application. The header names the user, or the body if the name is capitalized.
   */
  ask(key: SubClientKey, user: string | null, prompt: string, signal?: AbortSignal): Promise<Answer> {
    const isInBody = user !== null && /^[A-Z]/.test(user);
    const body = { model: 'turns', messages: [{ role: 'user', content: prompt }], ...(isInBody && { user }) };
    const headers = { ...(user !== null && !isInBody && { 'x-openwebui-user-id': user }), 'x-api-key': keys[key] };
    return this.service.post('/v1/chat/completions', body, headers, signal);
  }

  /** Sends a prompt, and resolves when this many jobs wait. */
  async queued(
    key: SubClientKey,
    user: string | null,
    prompt: string,
    waiting: number,
  ): Promise<{ answer: Promise<Answer> }> {
    const answer = this.ask(key, user, prompt);
    await untilJobs(this.service, 1, waiting);
    return { answer };
  }

  async background(user: string, input: string): Promise<number> {
    const headers = { 'x-openwebui-user-id': user, 'x-api-key': keys.app };
    return (await this.service.post('/v1/responses', { model: 'turns', input, background: true }, headers)).status;
  }

  /**
   * Starts ten background jobs of one user, and one each of four others, then runs them. Resolves with the prompts in
   * the order of their starts.
   */
  async backgroundCrowd(): Promise<{ readonly started: string[] }> {
    const first = this.ask('other', null, 'first');
    await untilJobs(this.service, 1, 0);
    const statuses = [];
    for (let number = 1; number <= 10; number++) statuses.push(await this.background('ada', `ada ${number}`));
    for (const user of ['bob', 'eve', 'joe', 'zoe']) statuses.push(await this.background(user, user));
    // The key may fill twelve of sixteen places, and one user nine of these twelve.
    expect(statuses).toEqual([...Array(9).fill(202), 429, 202, 202, 202, 429]);
    await this.open();
    await first;
    return { started: await this.started(13) };
  }

  open(): Promise<void> {
    return writeFile(this.#path('gate'), '');
  }

  /** Returns the prompts of the started jobs, in order, when at least `count` have started. */
  started(count: number): Promise<string[]> {
    return until(async () => {
      const text = await readFile(this.#path('order'), 'utf8').catch(() => '');
      const prompts = text.split('\n').slice(0, -1);
      return prompts.length >= count ? prompts : null;
    }, `${count} jobs to start`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.open();
    await this.service.stop();
    await this.#close();
  }
}
