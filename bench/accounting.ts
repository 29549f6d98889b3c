import { temporaryFolder } from '../test/support/basics/folder.js';
import { runWithFaults, startFaulty } from '../test/support/faults/driver.js';
import { Known } from '../test/support/faults/lane.js';
import { total } from '../test/support/jobs/job-ledger.js';
import type { Row } from './support/table.js';

const jobs = Number(process.env.FAULT_JOBS ?? 10_000);
const seed = Number(process.env.FAULT_SEED ?? 20_240_701);

/** Runs jobs under every kind of fault, and compares the number of their ends in log, metrics and clients. */
export async function accounting(): Promise<Row[]> {
  await using folder = await temporaryFolder();
  await using service = await startFaulty(folder.path);
  const { ledger, struck, seconds } = await runWithFaults(service, new Known(), { jobs, seed });
  const { logged, counted, clients, faults } = ledger;
  const byOutcome = Object.entries(counted).map(([outcome, count]) => `${outcome} ${count}`);
  const strikes = Object.entries(struck).flatMap(([kind, count]) => (count === 0 ? [] : [`${kind} ${count}`]));
  for (const fault of faults.slice(0, 20)) process.stderr.write(`${fault}\n`);
  const lost = total(counted) - clients.admitted;
  return [
    {
      question: `${jobs} admitted jobs with random faults (seed ${seed}; ${strikes.join(', ')}; ${seconds.toFixed(0)} s)`,
      target: 'one end each; log, metrics and clients agree',
      measured: `metrics ${total(counted)} (${byOutcome.join(', ')}); log ${total(logged)}; clients ${clients.admitted} known and ${lost} of ${clients.unknown} whose connection broke before a word; ${faults.length} disagree`,
      holds:
        faults.length === 0 && total(counted) >= jobs && total(counted) === total(logged) && lost <= clients.unknown,
    },
  ];
}
