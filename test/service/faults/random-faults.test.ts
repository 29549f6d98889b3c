import { temporaryFolder } from '../../support/basics/folder.js';
import { mountTinyDisk } from '../../support/basics/tiny-disk.js';
import { expectState, killUnderLoad, runWithFaults, startFaulty } from '../../support/faults/driver.js';
import { Known } from '../../support/faults/lane.js';
import { usualKinds } from '../../support/faults/random-faults.js';
import { total } from '../../support/jobs/job-ledger.js';

/** FAULT_JOBS and FAULT_SEED select another run; `npm run bench -- accounting` runs ten thousand jobs. */
const jobs = Number(process.env.FAULT_JOBS ?? 250);
const seed = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);
const isRoot = process.getuid?.() === 0;

describe('Operations of every kind, while workers, programs, connections and the disk fail at random moments', () => {
  it(`end once each, leave nothing behind, and nothing answered is lost, also when the primary is killed: ${jobs} jobs, seed ${seed}`, async () => {
    const disk = isRoot ? await mountTinyDisk(256 * 1024) : null;
    await using folder = disk ?? (await temporaryFolder());
    const known = new Known();
    for (const round of [0, 1]) {
      await using service = await startFaulty(folder.path);
      await expectState(service, known);
      const options = { jobs: jobs / 2, seed: seed + 500 * round, disk };
      const { ledger, struck, seconds } = await runWithFaults(service, known, options);
      process.stderr.write(`${JSON.stringify({ seed, ledger, struck, seconds })}\n`);
      for (const kind of usualKinds) expect(struck[kind]).toBeGreaterThan(0);
      expect(ledger.faults).toEqual([]);
      expect(total(ledger.counted)).toBeGreaterThanOrEqual(jobs / 2);
      expect(known.fates.filter(({ error }) => error === 'ECONNREFUSED')).toEqual([]);
      await killUnderLoad(service, known, seed + 500 * round);
    }
    await using last = await startFaulty(folder.path);
    await expectState(last, known);
  }, 600_000);
});
