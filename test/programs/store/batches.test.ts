import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { createBatch, promptLine, resultsIn, untilEnded, upload } from '../../support/clients/batches.js';
import { untilTreeGone } from '../../support/jobs/jobs.js';
import { script, startWithProgram } from '../../support/service/service.js';

/** `BATCH_LINES=10000` for more. */
const lines = Number(process.env.BATCH_LINES ?? 240);
const kills = Number(process.env.STORE_KILLS ?? 3);
const slots = 8;
const goneMs = 10_000;

describe('A killed service', () => {
  it(`gives each of ${lines} lines of a batch one result, after ${kills} kills`, async () => {
    await using folder = await temporaryFolder();
    const notes = join(folder.path, 'notes');
    const env = {
      MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}`,
      MODEL_API_MAX_CONCURRENT: String(slots),
      MODEL_API_STANDBY: '0',
    };
    const start = () => startWithProgram(script('notes-each-job.pl', notes), env);
    const prompts = Array.from({ length: lines }, (_, index) => `line ${index}`);
    let id: unknown;
    for (let kill = 0; kill < kills; kill++) {
      const service = await start();
      if (kill === 0) {
        const text = prompts.map((prompt) => promptLine(prompt, prompt)).join('\n');
        const file = await upload(service, text);
        id = (await createBatch(service, file.body.id)).body.id;
      }
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 1200));
      service.process.kill('SIGKILL');
      await service.exited;
      await untilTreeGone(service, goneMs);
      await service.stop();
    }
    await using service = await start();
    const batch = await untilEnded(service, id, 1_500_000);
    const answers = await resultsIn(service, batch.output_file_id);
    const failures = await resultsIn(service, batch.error_file_id);
    const found = [...answers, ...failures].map((line) => String(line.custom_id));
    expect(found.toSorted()).toEqual(prompts.toSorted());
    for (const { custom_id: prompt, response } of answers)
      expect(response?.body.choices?.[0]?.message.content).toBe(`done: ${prompt}`);
    for (const { response } of failures) expect(response?.body.error?.code).toBe('host_lost');
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: lines, completed: answers.length, failed: failures.length },
    });
    const started = (await readFile(notes, 'utf8')).split('\n').filter((line) => line !== '').length;
    // Only lines that ran during a kill start again.
    expect(started).toBeLessThanOrEqual(lines + kills * slots);
    expect((await service.get('/jobs')).body.jobs).toEqual([]);
    process.stderr.write(
      `${kills} kills, ${answers.length} answers, ${failures.length} failures, ${started} started\n`,
    );
  }, 1_800_000);
});
