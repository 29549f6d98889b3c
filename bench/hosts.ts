import { HostFleet } from '../test/support/service/host-fleet.js';
import { askMany } from '../test/support/service/load.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';

const slots = 12;
const hosts = 3;
const clients = 24;
/** Command that waits like a CLI for its API, so that jobs do not compete for the processor. */
const command = "sh -c 'cat; sleep 0.2'";
const jobsOfRound = 360;
const minRatio = 0.95;

/** Compares the jobs per second of several hosts behind HAProxy with one host that has as many slots. */
export async function severalHosts(rounds: number): Promise<Row[]> {
  await using one = await startWith(1);
  await using fleet = await startWith(hosts);
  const ofOne: number[] = [];
  const ofFleet: number[] = [];
  for (let round = 0; round < rounds; round++) {
    ofOne.push(await jobsPerSecond(one.hosts[0]?.service.url ?? ''));
    ofFleet.push(await jobsPerSecond(fleet.url));
  }
  const ratios = ofFleet.map((perSecond, round) => perSecond / (ofOne[round] ?? 0));
  return [
    {
      question: `Jobs per second of ${hosts} hosts behind HAProxy ÷ one host with the same ${slots} slots, ${clients} clients`,
      target: `≥ ${minRatio}`,
      measured: `${median(ratios).toFixed(2)} (${spread(ratios, 2)}): ${median(ofFleet).toFixed(1)} against ${median(ofOne).toFixed(1)} jobs/s, of ${(slots / 0.2).toFixed(0)} that the slots allow`,
      holds: median(ratios) >= minRatio,
    },
  ];
}

function startWith(size: number): Promise<HostFleet> {
  const maxConcurrent = String(slots / size);
  const env = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: command, MODEL_API_MAX_CONCURRENT: maxConcurrent };
  return HostFleet.start({ size, env });
}

async function jobsPerSecond(url: string): Promise<number> {
  const startedMs = performance.now();
  const fates = await askMany({ url, count: jobsOfRound, clients });
  const failed = fates.find(({ status }) => status !== 200);
  if (failed !== undefined) throw new Error(`a job failed: ${JSON.stringify(failed)}`);
  return (1000 * fates.length) / (performance.now() - startedMs);
}
