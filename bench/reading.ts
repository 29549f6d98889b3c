import { type Service, startService } from '../test/support/service/service.js';
import { BareCluster } from './support/bare-cluster.js';
import { Generator } from './support/generator.js';
import { alternately } from './support/pairs.js';
import { dropLog } from './support/service-log.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';
import { perSecond } from './support/task.js';

const targetRatio = 0.75;
/**
 * Numbers of connections: few, so that each call of a worker to the primary serves few requests, and as many as a busy
 * host has.
 */
const crowds = [16, 64];
const workers = 2;
const forMs = 600;
const warmUpMs = 2500;
const paths = ['/version', '/health'];

/** Measures read-only requests, compared to a plain express cluster that answers the same JSON. */
export async function reading(rounds: number): Promise<Row[]> {
  await using service = await startService({ env: { MODEL_API_WORKERS: String(workers) } });
  await service.log('readiness_checked');
  const answers = await Promise.all(paths.map(async (path) => [path, (await service.get(path)).body] as const));
  await using bare = await BareCluster.start(workers, Object.fromEntries(answers));
  dropLog(service);
  const rows: Row[] = [];
  for (const path of paths) {
    for (const connections of crowds) rows.push(await ratioFor(path, connections, service, bare, rounds));
  }
  return rows;
}

async function ratioFor(
  path: string,
  connections: number,
  service: Service,
  bare: BareCluster,
  count: number,
): Promise<Row> {
  await using ofRelay = Generator.getting(service.port, path);
  await using ofBare = Generator.getting(bare.port, path);
  const task = { concurrency: connections, forMs };
  await ofBare.perform({ ...task, forMs: warmUpMs });
  await ofRelay.perform({ ...task, forMs: warmUpMs });
  const rounds = await alternately(count, {
    bare: async () => perSecond(await ofBare.perform(task)),
    relay: async () => perSecond(await ofRelay.perform(task)),
  });
  const ratios = rounds.map(({ bare, relay }) => relay / bare);
  const [relay, own] = [rounds.map((round) => round.relay), rounds.map((round) => round.bare)].map(median);
  return {
    question: `GET ${path} per second ÷ bare express 5 cluster, ${workers} workers each, ${connections} connections`,
    target: `≥ ${targetRatio}`,
    measured: `${median(ratios).toFixed(2)} (${spread(ratios, 2)}): ${relay?.toFixed(0)} against ${own?.toFixed(0)} requests/s`,
    holds: median(ratios) >= targetRatio,
  };
}
