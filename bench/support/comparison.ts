import { startWithProgram } from '../../test/support/service.js';
import { Generator } from './generator.js';
import type { OneShot } from './one-shots.js';
import type { Task, Yield } from './task.js';

export interface Round {
  readonly bare: Yield;
  readonly relay: Yield;
}

const warmUpMs = 700;

/** Does the same task with bare spawns and through the relay, in turn, so that both see the same weather. */
export async function compare(program: OneShot, task: Task, rounds: number): Promise<Round[]> {
  await using service = await startWithProgram(program.command.map((word) => `'${word}'`).join(' '));
  await using relay = Generator.againstRelay(service.port, program);
  await using bare = Generator.spawning(program);
  for (const side of [bare, relay]) await side.perform({ ...task, forMs: warmUpMs });
  const measured: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    measured.push({ bare: await bare.perform(task), relay: await relay.perform(task) });
  }
  return measured;
}
