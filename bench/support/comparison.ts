import { startWithProgram, twoWorkers } from '../../test/support/service/service.js';
import { Generator } from './generator.js';
import type { OneShot } from './one-shots.js';
import { alternately } from './pairs.js';
import { processorMs } from './processor-time.js';
import type { Task, Yield } from './task.js';

export interface Effort extends Yield {
  /** Processor time of load generator, relay and programs, in milliseconds. */
  readonly processorMs: number;
}

export interface Round {
  readonly bare: Effort;
  readonly relay: Effort;
}

/**
 * Duration of the warm-up. A service runs for weeks, so it is measured after its code is compiled; a bare loop has less
 * code.
 */
const warmUpMs = { bare: 1000, relay: 4000 };

/**
 * Does the same task with bare spawns and through the relay, alternately, so that both meet the same load of the
 * machine.
 */
export async function compare(
  program: OneShot,
  task: Task,
  rounds: number,
  env: Readonly<Record<string, string>> = {},
): Promise<Round[]> {
  await using service = await startWithProgram(program.command.map((word) => `'${word}'`).join(' '), {
    ...twoWorkers,
    ...env,
  });
  await using relay = Generator.againstRelay(service.port, program);
  await using bare = Generator.spawning(program);
  const relayPids = [relay.pid, service.pid, ...(await service.workers())];
  const askRelay = () => measure(relay, relayPids, task);
  const askBare = () => measure(bare, [bare.pid], task);
  await bare.perform({ ...task, forMs: warmUpMs.bare });
  await relay.perform({ ...task, forMs: warmUpMs.relay });
  return await alternately(rounds, { bare: askBare, relay: askRelay });
}

async function measure(generator: Generator, pids: readonly number[], task: Task): Promise<Effort> {
  const before = await processorMs(pids);
  const result = await generator.perform(task);
  return { ...result, processorMs: (await processorMs(pids)) - before };
}
