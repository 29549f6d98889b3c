import type { ReasonBody } from '../../shared/api/health.js';
import { timestamp } from '../../shared/clock.js';
import type { BreakerReason, ReadinessEntry } from '../../shared/health.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { ModelNames } from '../cli/route.js';
import type { Store } from '../store/contract/store.js';

/** What holds jobs back. */
interface OpenCircuit {
  /** Null for the whole account. */
  readonly model: string | null;
  readonly reason: BreakerReason;
  /** Milliseconds since the epoch. */
  readonly until: number | null;
}

interface JudgedCli extends Pick<ModelCli, 'name' | 'publicName'> {
  readonly health: {
    readonly checks: Pick<ModelCli['health']['checks'], 'current'>;
    readonly circuits: Pick<ModelCli['health']['circuits'], 'status'>;
  };
}

/** The owners of what may be wrong. */
export interface ReasonSources {
  readonly clis: readonly JudgedCli[];
  readonly names: {
    readonly choice: Pick<ModelNames['choice'], 'fallback' | 'label'>;
    readonly usual: { readonly cli: Pick<ModelCli, 'name'>; readonly model: string | null };
  };
  readonly store: Pick<Store, 'kind' | 'isUp'>;
}

/** Why the service is degraded; empty where it is not. Nothing else decides this, and all who say why say this. */
export function degradedReasons({ clis, names, store }: ReasonSources): readonly ReasonBody[] {
  const ofClis = clis.flatMap((cli) => reasonsOfCli(cli.health.checks.current, openCircuits(cli, names)));
  return store.isUp ? ofClis : [...ofClis, reasonOfStore(store)];
}

/** What keeps all jobs of one CLI from being started, or those that name no model. */
function openCircuits(cli: JudgedCli, { choice, usual }: ReasonSources['names']): readonly OpenCircuit[] {
  const isUsual = (model: string) => model === '' || (cli.name === usual.cli.name && model === usual.model);
  const nameOf = (model: string) => cli.publicName(model) || (choice.fallback ?? choice.label ?? 'default');
  return cli.health.circuits.status.flatMap(({ state, model, reason, until }) => {
    if (state !== 'open' || reason === null || !(model === null || isUsual(model))) return [];
    return [{ model: model === null ? null : nameOf(model), reason, until }];
  });
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
