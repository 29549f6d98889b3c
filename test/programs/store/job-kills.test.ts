import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectTo } from '../../../src/features/sqlite/node-sqlite.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { askInBackground } from '../../support/clients/background.js';
import { follow } from '../../support/clients/event-stream.js';
import { untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, script, startWithProgram } from '../../support/service/service.js';

const kills = Number(process.env.STORE_KILLS ?? 4);
const clients = 4;
const longestMs = 800;
/** Time in which the workers terminate the remaining processes of its jobs. */
const goneMs = 10_000;

const preferred = { Prefer: 'respond-async' };

/** Jobs that services have accepted, across restarts. */
class Promises {
  /** Prompts by job ID. */
  readonly accepted = new Map<string, string>();
  #count = 0;

  /** Runs one client, which submits jobs until the service dies. */
  async post(service: Service): Promise<void> {
    for (;;) {
      const prompt = `job ${++this.#count}`;
      const answer = await service.post('/ask', { prompt }, preferred).catch(() => null);
      if (answer === null || answer.status === 503) return;
      if (answer.status === 429) await service.get('/version').catch(() => null);
      if (answer.status !== 202) continue;
      expect(answer.body).toMatchObject({ durable: true, status: 'queued' });
      this.accepted.set(String(answer.body.job_id), prompt);
    }
  }
}

describe('A killed service', () => {
  it(`starts no background job twice, and loses none of the accepted ones, ${kills} times`, async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'state', 'store.db');
    const notes = join(folder.path, 'notes');
    const env = {
      MODEL_API_STORE: `sqlite:${path}`,
      MODEL_API_MAX_JOBS: '400', // the jobs waiting at the end take seconds, however many were accepted
      MODEL_API_STANDBY: '0',
    };
    const start = () => startWithProgram(script('notes-each-job.pl', notes), env);
    const promises = new Promises();
    for (let kill = 0; kill < kills; kill++) {
      const service = await start();
      const posts = Promise.all(Array.from({ length: clients }, () => promises.post(service)));
      await new Promise((resolve) => setTimeout(resolve, Math.random() * longestMs));
      service.process.kill('SIGKILL');
      await Promise.all([service.exited, posts]);
      await untilTreeGone(service, goneMs);
      await service.stop();
    }
    await using service = await start();
    const all = [...promises.accepted.keys()];
    await until(async () => await areOver(service), 'the end of all jobs', 120_000);
    const counts = { succeeded: 0, failed: 0 };
    const started = (await readFile(notes, 'utf8')).split('\n').filter((line) => line !== '');
    for (const id of all) {
      const { status, body } = await service.get(`/jobs/${id}`);
      const starts = started.filter((line) => line === promises.accepted.get(id)).length;
      expect(status).toBe(200);
      if (body.status === 'succeeded') {
        counts.succeeded++;
        expect(starts).toBe(1);
        expect(body.result).toMatchObject({ response: `done: ${promises.accepted.get(id)}` });
      } else {
        counts.failed++;
        expect(body).toMatchObject({ status: 'failed', error: { error: 'cli_error', reason: 'host_lost' } });
      }
    }
    expect(new Set(started).size).toBe(started.length); // includes jobs whose 202 did not arrive
    await service.stop();
    const sql = connectTo(path);
    expect(sql.prepare('PRAGMA integrity_check').get()).toMatchObject({ integrity_check: 'ok' });
    sql.close();
    const figures = `${all.length} accepted, ${counts.succeeded} answered, ${counts.failed} lost with their host`;
    process.stderr.write(`${kills} kills, ${figures}, ${started.length} started\n`);
    expect(counts.succeeded).toBeGreaterThan(0);
  }, 1_800_000);
});

it('A reader of a partial answer is informed that the job was lost with its host', async () => {
  await using folder = await temporaryFolder();
  const env = { MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}` };
  const killed = await startWithProgram(script('begins-and-waits.pl'), env);
  const id = await askInBackground(killed, 'wait');
  const reader = await follow(killed, id);
  const last = await until(async () => {
    const event = await reader.any();
    return event.event === 'delta' ? event.id : null;
  }, 'the begin of the answer');
  killed.process.kill('SIGKILL');
  await killed.exited;
  reader.leave();
  await untilTreeGone(killed, goneMs);
  await killed.stop();
  await using service = await startWithProgram(script('begins-and-waits.pl'), env);
  const [end, ...others] = await (await follow(service, id, last)).remainingEvents();
  expect([end?.event, end?.data.reason, others]).toEqual(['error', 'host_lost', []]);
  expect((await follow(service, id, end?.id)).status).toBe(204);
});

async function areOver(service: Service): Promise<boolean> {
  const waiting = await service.get('/jobs?status=queued&limit=1');
  const running = await service.get('/jobs?status=running&limit=1');
  return [waiting, running].every(({ body }) => (body.jobs as object[]).length === 0);
}
