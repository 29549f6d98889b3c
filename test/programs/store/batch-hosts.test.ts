import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { createBatch, promptLine, resultsIn, untilEnded, upload } from '../../support/clients/batches.js';
import { plainForm } from '../../support/jobs/job-records.js';
import { untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, script, startWithProgram } from '../../support/service/service.js';
import { batchOf } from '../../support/stores/file-store-contract.js';
import { openRedisAt, startRedis } from '../../support/stores/redis-server.js';
import { acceptedJob } from '../../support/stores/shared-jobs.js';

const lines = 300;
const kills = 3;
const slots = 4;
/** Longer than the lease of a batch. */
const pauseMs = 18_000;
const limitMs = 300_000;

interface Fleet {
  readonly hosts: Service[];
  /** File to which each started program adds its prompt. */
  readonly notes: string;
  start(): Promise<Service>;
}

/** Runs a test on three hosts with one Redis, and ends everything that was started. */
async function withHosts(test: (fleet: Fleet) => Promise<void>): Promise<void> {
  await using redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
  await using folder = await temporaryFolder();
  const notes = join(folder.path, 'notes');
  const hosts: Service[] = [];
  const env = { MODEL_API_STORE: redis.url, MODEL_API_MAX_CONCURRENT: String(slots), MODEL_API_STANDBY: '0' };
  const start = () => startWithProgram(script('notes-each-job.pl', notes), env);
  try {
    for (let count = 0; count < 3; count++) hosts.push(await start());
    await test({ hosts, notes, start });
  } finally {
    await Promise.all(hosts.map((host) => host.stop()));
  }
}

async function kill(host: Service): Promise<void> {
  host.process.kill('SIGKILL');
  await host.exited;
  await untilTreeGone(host, 10_000);
  await host.stop();
}

function hostAt(hosts: readonly Service[], index: number): Service {
  const host = hosts[index % hosts.length];
  if (host === undefined) throw new Error('there is no host');
  return host;
}

async function startBatch(host: Service, prompts: readonly string[]): Promise<string> {
  const file = await upload(host, prompts.map((prompt) => promptLine(prompt, prompt)).join('\n'));
  return String((await createBatch(host, file.body.id)).body.id);
}

async function linesIn(path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

/** Checks on each host that the batch has one right result for each prompt. */
async function expectWhole(hosts: readonly Service[], id: string, prompts: readonly string[]): Promise<void> {
  for (const host of hosts) {
    const batch = await untilEnded(host, id, limitMs);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: prompts.length, failed: 0 } });
    const answers = await resultsIn(host, batch.output_file_id);
    expect(answers.map(({ custom_id: prompt }) => prompt).toSorted()).toEqual(prompts.toSorted());
    for (const { custom_id: prompt, response } of answers)
      expect(response?.body.choices?.[0]?.message.content).toBe(`done: ${prompt}`);
  }
}

async function expectNoJobs(hosts: readonly Service[]): Promise<void> {
  for (const host of hosts) expect((await host.get('/jobs')).body.jobs).toEqual([]);
}

const prompts = Array.from({ length: lines }, (_, index) => `line ${index}`);

describe('A batch on three hosts with one Redis', () => {
  it(
    `has one result for each of ${lines} lines after ${kills} kills of hosts`,
    () =>
      withHosts(async ({ hosts, notes, start }) => {
        const id = await startBatch(hostAt(hosts, 0), prompts);
        for (let count = 0; count < kills; count++) {
          const before = (await linesIn(notes)).length;
          await until(async () => (await linesIn(notes)).length > before + 20, 'further lines to run', limitMs);
          await kill(hostAt(hosts, count));
          hosts[count % hosts.length] = await start();
        }
        await expectWhole(hosts, id, prompts);
        await expectNoJobs(hosts);
        // Only lines that ran on a killed host start again.
        expect((await linesIn(notes)).length).toBeLessThanOrEqual(lines + kills * slots);
      }),
    limitMs,
  );

  it(
    'is run by another host while its host stands still, and no line runs again when that host goes on',
    () =>
      withHosts(async ({ hosts, notes }) => {
        const ids = [];
        for (const host of hosts) ids.push(await startBatch(host, prompts.slice(0, 120)));
        const still = hostAt(hosts, 0);
        await until(async () => (await linesIn(notes)).length > 20, 'some lines to run');
        still.process.kill('SIGSTOP');
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        still.process.kill('SIGCONT');
        for (const id of ids) await expectWhole(hosts, id, prompts.slice(0, 120));
        await expectNoJobs(hosts);
        // Lines of jobs that ran on the stopped host are lost with it, and start again.
        expect((await linesIn(notes)).length).toBeLessThanOrEqual(360 + slots);
      }),
    limitMs,
  );

  it('is cancelled from any of them', () =>
    withHosts(async ({ hosts, notes }) => {
      const id = await startBatch(hostAt(hosts, 0), prompts);
      await until(async () => (await linesIn(notes)).length > 20, 'some lines to run');
      expect((await hostAt(hosts, 2).post(`/v1/batches/${id}/cancel`, {})).status).toBe(200);
      const { status, request_counts: counts, output_file_id: file } = await untilEnded(hostAt(hosts, 1), id, limitMs);
      expect([status, counts.total, counts.completed < lines]).toEqual(['cancelled', lines, true]);
      expect(await resultsIn(hostAt(hosts, 1), file)).toHaveLength(counts.completed);
      await expectNoJobs(hosts);
    }));
});

it('A host that has lost a batch gets no job for a line, even if the line has ended on another host', async () => {
  await using redis = await startRedis();
  const limits = { ttlMs: 3_600_000, maxConversations: 1000, clientShare: 250 };
  const [still, other] = [await openRedisAt(redis.url, limits), await openRedisAt(redis.url, limits)];
  const line = { customId: 'a', ignored: [], isLegacyCall: false, batch: 'b' };
  const job = { ...acceptedJob('j1'), form: { ...plainForm, line } };
  try {
    await still.files.addBatch(batchOf('b'));
    await still.files.leaseBatches(1);
    await until(async () => (await other.files.leaseBatches(60_000)).length === 1, 'the other host to have the batch');
    await other.jobs.accept(job);
    await other.jobs.removeJob('j1');
    await expect(still.jobs.accept(job)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await other.jobs.findJob('j1', null)).toBeNull();
  } finally {
    await Promise.all([still.close(), other.close()]);
  }
});
