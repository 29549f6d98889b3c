import { largestBodies } from '../test/support/doors/largest-bodies.js';
import type { Service } from '../test/support/service/service.js';
import type { Stall } from '../test/support/service/stall-probe.js';
import { type Stalls, startWatched } from '../test/support/service/stalls.js';
import { dropLog } from './support/service-log.js';
import { median } from './support/statistics.js';
import type { Row } from './support/table.js';

const targetMs = 50;
const shown = 12;
const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

interface Case extends Stalls {
  readonly path: string;
  readonly field: string;
}

/**
 * Measures how long the largest bodies of each API and each field block the event loops of a worker and of the primary.
 */
export async function largestBodiesOfAll(rounds: number): Promise<Row[]> {
  await using watched = await startWatched();
  dropLog(watched.service);
  const cases: Case[] = [];
  for (const { path, field, body } of largestBodies()) {
    const measured: Case[] = [];
    for (let round = 0; round < Math.min(rounds, 3); round++) {
      await watched.takeStalls();
      await send(watched.service, path, body);
      measured.push({ path, field, ...(await watched.takeStalls()) });
    }
    cases.push(middleOf(measured));
  }
  return cases
    .toSorted((a, b) => worstOf(b) - worstOf(a))
    .slice(0, shown)
    .map(rowOf);
}

function middleOf(measured: readonly Case[]): Case {
  const middle = median(measured.map(worstOf));
  return measured.toSorted((a, b) => Math.abs(worstOf(a) - middle) - Math.abs(worstOf(b) - middle))[0] as Case;
}

function worstOf({ worker, primary }: Case): number {
  return Math.max(worker.processorMs, primary.processorMs);
}

function rowOf(measured: Case): Row {
  const { path, field, worker, primary } = measured;
  const figures = ({ processorMs, wallMs }: Stall) =>
    `${processorMs.toFixed(0)} ms (${wallMs.toFixed(0)} by the clock)`;
  return {
    question: `Longest stop of an event loop, processor time: POST ${path}, ${field}`,
    target: `≤ ${targetMs} ms`,
    measured: `worker ${figures(worker)}; primary ${figures(primary)}`,
    holds: worstOf(measured) <= targetMs,
  };
}

/** Sends a body. The answer may be too long for the service, but the body must be valid. */
async function send(service: Service, path: string, body: string): Promise<void> {
  const response = await fetch(`${service.url}${path}`, { method: 'POST', headers, body });
  const text = await response.text();
  if (response.status >= 400 && response.status < 500)
    throw new Error(`POST ${path} is not legal: ${response.status} ${text.slice(0, 200)}`);
}
