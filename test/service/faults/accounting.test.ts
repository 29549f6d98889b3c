import { total } from '../../support/jobs/job-ledger.js';
import { runWithFaults, startFaulty } from '../../support/service/faulty-run.js';
import { everyKind } from '../../support/service/random-faults.js';

/** FAULT_JOBS and FAULT_SEED select another run; `npm run bench -- accounting` runs ten thousand jobs. */
const jobs = Number(process.env.FAULT_JOBS ?? 250);
const seed = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);

describe('Jobs admitted while workers and programs are killed and stopped', () => {
  it(`end exactly once, with the same result in the log, in the metrics and for the clients: ${jobs} jobs, seed ${seed}`, async () => {
    await using service = await startFaulty();
    const { ledger, struck, fates, seconds } = await runWithFaults(service, jobs, everyKind, seed);
    process.stderr.write(`${JSON.stringify({ seed, ledger, struck, seconds })}\n`);
    for (const kind of ['worker-kill', 'cli-kill', 'cli-stop'] as const) expect(struck[kind]).toBeGreaterThan(0);
    expect(ledger.faults).toEqual([]);
    expect(total(ledger.counted)).toBeGreaterThanOrEqual(jobs);
    expect(total(ledger.counted)).toBeLessThanOrEqual(ledger.clients.admitted + ledger.clients.unknown);
    expect(fates.filter(({ error }) => error === 'ECONNREFUSED')).toEqual([]);
    expect(service.stderr).toEqual([]);
  });
});
