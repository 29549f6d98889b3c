import type { ReasonBody } from '../../shared/api/health.js';
import { timestamp } from '../../shared/clock.js';
import type { ReadinessEntry } from '../../shared/readiness.js';
import type { Breakers, OpenCircuit } from '../limits/breakers.js';
import type { ReadinessBoard } from '../readiness/readiness-board.js';
import type { Store } from '../store/store.js';

/** The owners of what may be wrong. */
export interface ReasonSources {
  readonly readiness: Pick<ReadinessBoard, 'current'>;
  readonly breakers: Pick<Breakers, 'openFor'>;
  readonly store: Pick<Store, 'kind' | 'isUp'>;
}

/** Why the service is degraded; empty where it is not. Nothing else decides this, and all who say why say this. */
export function degradedReasons({ readiness, breakers, store }: ReasonSources): readonly ReasonBody[] {
  const ofClis = readiness.current.flatMap((entry, index) => reasonsOfCli(entry, breakers.openFor(index)));
  return store.isUp ? ofClis : [...ofClis, reasonOfStore(store)];
}

/** A check that has failed only because of an open circuit says nothing beside that circuit. */
function reasonsOfCli(entry: ReadinessEntry, open: readonly OpenCircuit[]): readonly ReasonBody[] {
  const held = open.map((circuit) => reasonOfCircuit(entry.cli, circuit));
  const isSaid = entry.status === 'ready' || (entry.isHeld === true && held.length > 0);
  return isSaid ? held : [reasonOfCheck(entry), ...held];
}

function reasonOfCheck({ cli, status, error }: ReadinessEntry): ReasonBody {
  const verdict = status === 'unknown' ? 'has not been checked yet' : 'is not ready';
  const why = error === null ? '' : `: ${error}`;
  return { part: 'cli', name: cli, message: `the model CLI ${cli} ${verdict}${why}` };
}

function reasonOfCircuit(cli: string, { model, reason, until }: OpenCircuit): ReasonBody {
  const ends = until === null ? {} : { until: timestamp(until) };
  const name = model ?? cli;
  if (reason === 'auth')
    return { part: 'cli', name, message: `the credential of the model CLI ${cli} is refused`, ...ends };
  const what = model === null ? 'its quota' : `its quota for ${model}`;
  return { part: 'quota', name, message: `the account of the model CLI ${cli} has used up ${what}`, ...ends };
}

function reasonOfStore({ kind }: ReasonSources['store']): ReasonBody {
  return {
    part: 'store',
    name: kind,
    message: `the store (${kind}) is down: conversations and background jobs are refused`,
  };
}
