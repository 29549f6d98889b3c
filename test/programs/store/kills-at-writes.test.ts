import { appendFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { randomNumbers } from '../../support/basics/random.js';
import { until } from '../../support/basics/until.js';
import { headersOf, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { KillingProxy, killedAtWrite } from '../../support/service/kills-at-writes.js';
import { type Answer, type Service, startService } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

/** Runs with a kill for each store. Many more hit all writes. */
const kills = Number(process.env.STORE_KILLS ?? 6);
/** Writes of one run of all operations, at most. */
const maxWrites = 40;
const operator = headersOf('operator');
/** Each run has a start of the service, which is slow on a busy machine. */
const limitMs = kills * 100_000;
const secret = 'marker-q8w7';

/** A request had no answer, because the service was killed. */
class Killed extends Error {}

/** What clients know from answers. A request without an answer may have had its effect or not. */
class Known {
  /** Keys that must work, by what removes them. */
  readonly keys = new Map<string, string>();
  readonly removedKeys = new Set<string>();
  readonly reservations = new Set<string>();
  readonly cancelled = new Set<string>();
  answered = 0;
  #count = 0;

  /** Makes and removes one of each kind. Throws `Killed`. */
  async run(service: Service): Promise<void> {
    const number = `${++this.#count}`;
    const send = async (answer: Promise<Answer>): Promise<Record<string, unknown>> => {
      const { status, body } = await answer.catch(() => {
        throw new Killed();
      });
      if (status >= 500) throw new Killed(); // the worker has lost its primary
      expect([status < 300, body]).toEqual([true, body]);
      this.answered++;
      return body;
    };
    for (const [key, path] of [...this.keys].slice(0, -4)) await this.#remove(send, service, key, path);
    const lent = await send(service.post('/lent-keys', { seconds: 3600 }, headersOf('alice')));
    this.keys.set(String(lent.key), `/lent-keys/${lent.id}`);
    const made = await send(service.post('/keys', { name: `k${number}` }, operator));
    this.keys.set(String(made.key), `/keys/k${number}`);
    const enrolled = await send(service.post('/courses/bio101/members', { logins: [`m${number}`] }, operator));
    for (const { key, name } of enrolled.added as { key: string; name: string }[])
      this.keys.set(key, `/courses/bio101/members/${name}`);
    const begins_at = new Date(Date.now() + this.#count * 3_600_000).toISOString();
    const order = { group: 'lab', slots: 1, begins_at, seconds: 60 };
    this.reservations.add(String((await send(service.post('/reservations', order, operator))).id));
    for (const id of [...this.reservations].slice(0, -1)) {
      this.reservations.delete(id);
      await send(service.delete(`/reservations/${id}`, operator));
      this.cancelled.add(id);
    }
    await send(service.post('/v1/responses', { model: 'eliza', input: secret }, headersOf('quiet')));
    await send(service.post('/chat', { message: 'of a client to forget' }, headersOf('gone')));
    await send(service.post('/store/purge', { client: 'key gone' }, operator));
    expect((await service.get('/chat', headersOf('gone'))).body.conversations ?? []).toEqual([]);
  }

  async #remove(
    send: (answer: Promise<Answer>) => Promise<unknown>,
    service: Service,
    key: string,
    path: string,
  ): Promise<void> {
    this.keys.delete(key); // it may be removed without an answer
    await send(service.delete(path, operator));
    this.removedKeys.add(key);
  }

  /** Expects everything that was answered. */
  async check(service: Service): Promise<void> {
    const statusOf = async (key: string) => (await service.get('/usage', { 'x-api-key': key })).status;
    for (const key of this.keys.keys())
      expect([this.keys.get(key), await statusOf(key)]).toEqual([this.keys.get(key), 200]);
    for (const key of [...this.removedKeys].slice(-10)) expect(await statusOf(key)).toBe(401);
    const { body } = await service.get('/reservations', operator);
    const ids = (body.reservations as { id: string }[]).map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining([...this.reservations]));
    expect(ids.filter((id) => this.cancelled.has(id))).toEqual([]);
    expect((await service.get('/courses/bio101/report', operator)).status).toBe(200);
  }
}

/** Returns the write at which a run is killed: those of all runs are spread over all writes. */
function writeOf(run: number, random: () => number): number {
  return 1 + Math.floor(((run + random()) * maxWrites) / kills);
}

async function textIn(folder: string): Promise<string> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  const files = entries.filter((entry) => entry.isFile());
  return (await Promise.all(files.map((each) => readFile(join(each.parentPath, each.name), 'latin1')))).join('');
}

interface Lab {
  readonly folder: TemporaryFolder;
  readonly env: Readonly<Record<string, string>>;
}

async function withLab(test: (lab: Lab) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  await using named = await writeNamedKeys();
  const holder = (name: string, more: string) => `${name}:sha256:${digestOf(keyOf(name))}:scopes=ask+chat${more}`;
  const lines = [
    holder('quiet', ',store=off'),
    holder('gone', ''),
    '@lab tokens=1000000/day',
    '@bio101 expires=2099-07-15',
  ];
  await appendFile(named.env.MODEL_API_KEYS_FILE ?? '', `${lines.join('\n')}\n`);
  const state = { MODEL_API_STATE_FOLDER: join(folder.path, 'state') };
  await test({ folder, env: { ...named.env, ...state } });
}

/** Runs all operations again and again; `arm` kills the service during each run, if it makes enough writes. */
async function runWithKills(env: Lab['env'], arm: (service: Service, run: number) => Promise<AsyncDisposable>) {
  const known = new Known();
  let killed = 0;
  for (let run = 0; run < kills; run++) {
    const service = await startService({ env });
    try {
      await known.check(service);
      await using _ = await arm(service, run);
      await known.run(service);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      killed++;
      await service.exited;
      await until(async () => (await service.jobProcesses()).length === 0, 'the end of its CLI processes');
    } finally {
      await service.stop();
    }
  }
  await using service = await startService({ env });
  await known.check(service);
  process.stderr.write(`${killed} kills in ${kills} runs, ${known.answered} answers\n`);
  expect(killed).toBeGreaterThan(kills / 4);
}

describe('A service that is killed at a write loses nothing that it has answered, and no removed key works again', () => {
  it.each(['memory', 'sqlite'] as const)(
    'with the state folder and the store %s',
    (kind) =>
      withLab(async ({ folder, env }) => {
        const random = randomNumbers(55);
        const store = kind === 'memory' ? {} : { MODEL_API_STORE: `sqlite:${join(folder.path, 'store.db')}` };
        const left = join(folder.path, 'left');
        await runWithKills({ ...env, ...store, ...killedAtWrite(left) }, async (_, run) => {
          await writeFile(left, String(writeOf(run, random)));
          return { [Symbol.asyncDispose]: () => rm(left, { force: true }) };
        });
        expect(await textIn(folder.path)).not.toContain(secret);
      }),
    limitMs,
  );

  it(
    'with Redis',
    () =>
      withLab(async ({ env }) => {
        await using redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
        await using proxy = new KillingProxy(redis.port);
        const url = `redis://127.0.0.1:${await proxy.listen()}`;
        const random = randomNumbers(56);
        await runWithKills({ ...env, MODEL_API_STORE: url }, async (service, run) => {
          proxy.arm(writeOf(run, random), () => service.process.kill('SIGKILL'));
          return { [Symbol.asyncDispose]: async () => proxy.disarm() };
        });
      }),
    limitMs,
  );
});
