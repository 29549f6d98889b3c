import { randomNumbers } from '../basics/random.js';
import { type Fate, fateOf, type JobOrder } from '../jobs/job-fates.js';
import { type Ledger, ledgerOf } from '../jobs/job-ledger.js';
import { untilJobs, untilTreeGone } from '../jobs/jobs.js';
import { type FaultKind, RandomFaults } from './random-faults.js';
import { type Service, script, startWithProgram, twoWorkers } from './service.js';

export interface FaultyRun {
  readonly fates: readonly Fate[];
  readonly ledger: Ledger;
  readonly struck: RandomFaults['struck'];
  readonly seconds: number;
}

const callers = 32;
const patienceMs = 30_000;
const ways: readonly (readonly [share: number, way: string])[] = [
  [0.8, 'echo'],
  [0.84, 'exit:3'],
  [0.88, 'exit-half:3'],
  [0.92, 'signal-half:KILL'],
  [0.96, 'exit:127'],
  [0.97, 'one-line'],
  [0.985, 'ignores-signals'],
  [1, 'hang-half'],
];

/** Starts a service with few slots and models that fail in every possible way. */
export function startFaulty(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  return startWithProgram(script('misbehaves.pl', '{model}'), {
    ...twoWorkers,
    MODEL_API_DEFAULT_MODEL: 'echo',
    MODEL_API_LOG_LEVEL: 'debug',
    MODEL_API_MAX_CONCURRENT: '6',
    MODEL_API_MAX_QUEUE: '100',
    MODEL_API_TIMEOUT: '1',
    MODEL_API_QUEUE_TIMEOUT_MS: '1500',
    MODEL_API_KILL_GRACE_MS: '100',
    MODEL_API_MAX_OUTPUT_BYTES: '1000000',
    ...env,
  });
}

/** Faults that must occur, so that a fast machine does not finish a run without them. */
const usualKinds: readonly FaultKind[] = ['worker-kill', 'cli-kill', 'cli-stop'];

/**
 * Sends jobs while faults occur, until `count` jobs were admitted for sure and each usual kind of fault has occurred.
 * Then waits until no job is left, and counts.
 */
export async function runWithFaults(
  service: Service,
  count: number,
  kinds: readonly FaultKind[],
  seed: number,
): Promise<FaultyRun> {
  const random = randomNumbers(seed);
  const fates: Fate[] = [];
  const startedMs = performance.now();
  let begun = 0;
  let open = count;
  const faults = new RandomFaults(service, kinds, randomNumbers(seed + 1), 1000);
  const toStrike = usualKinds.filter((kind) => kinds.includes(kind));
  const call = async () => {
    while (open > 0 || toStrike.some((kind) => faults.struck[kind] === 0)) {
      open--;
      const fate = await fateOf(service.port, orderOf(`job-${++begun}`, random));
      fates.push(fate);
      if (fate.wasAdmitted !== true) open++;
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  await faults[Symbol.asyncDispose]();
  await untilTreeGone(service, patienceMs);
  await untilJobs(service, 0, 0, patienceMs);
  const seconds = (performance.now() - startedMs) / 1000;
  return { fates, ledger: await ledgerOf(service, fates), struck: faults.struck, seconds };
}

function orderOf(id: string, random: () => number): JobOrder {
  const dice = random();
  const model = ways.find(([share]) => dice < share)?.[1] ?? 'echo';
  const isChat = random() < 0.2;
  const stream = random() < 0.7;
  const disconnects = stream && random() < 0.25;
  const body = { [isChat ? 'message' : 'prompt']: `prompt ${id}`, model, stream };
  return { id, path: isChat ? '/chat' : '/ask', body, leaveAfterMs: disconnects ? random() * 300 : null };
}
