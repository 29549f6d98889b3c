import type { ReasonBody } from '../../shared/api/health.js';
import { timestamp } from '../../shared/clock.js';
import type { BreakerReason, ReadinessEntry } from '../../shared/health.js';
import type { FileFaults } from '../access/file-faults.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { AtLeastOne } from '../cli/models.js';
import type { ModelNames } from '../cli/route.js';
import type { CircuitStatus } from '../health/circuit.js';
import type { Host } from '../lifecycle/host.js';
import type { Store } from '../store/contract/store.js';

/** Whether an account belongs to a client, so that its failure does not concern the others. */
export function isPersonal({ account }: Pick<ModelCli, 'account'>): boolean {
  return account.owners.length > 0;
}

/** Parts of the service that can be degraded. */
export interface ReasonSources {
  readonly clis: AtLeastOne<ModelCli>;
  readonly names: Pick<ModelNames, 'choice' | 'defaultRoute'>;
  readonly store: Pick<Store, 'kind' | 'isUp'>;
  readonly fileFaults: Pick<FileFaults, 'reasons'>;
  readonly host: Pick<Host, 'defects'>;
}

/** Returns why the service is degraded; empty if it is not. No other code decides this. */
export function degradedReasons({ clis, names, store, fileFaults, host }: ReasonSources): ReasonBody[] {
  const cliReasons = clis
    .filter((cli) => !isPersonal(cli))
    .flatMap((cli) => {
      const open = openCircuits(cli, names);
      return [...reasonsOfCli(cli, open), ...(open.length === 0 ? shortageOf(cli) : [])];
    });
  const message = `the store (${store.kind}) is down: conversations and background jobs are refused`;
  const storeReasons: ReasonBody[] = store.isUp ? [] : [{ part: 'store', name: store.kind, message }];
  return [...cliReasons, ...storeReasons, ...fileFaults.reasons, ...reasonOfDefect(host.defects.lastAt)];
}

function reasonOfDefect(lastAt: number | null): ReasonBody[] {
  if (lastAt === null) return [];
  const message = `the service had an exception that nothing caught, the last time at ${timestamp(lastAt)}: the log has it as internal_error`;
  return [{ part: 'service', name: 'primary', message }];
}

/** Open circuit. `model` is null for the whole account. */
type OpenCircuit = Pick<CircuitStatus, 'model' | 'until'> & { readonly reason: BreakerReason };

/** Returns the open circuits that block all jobs of a CLI, or jobs without a model name. */
function openCircuits(cli: ModelCli, { choice, defaultRoute }: ReasonSources['names']): readonly OpenCircuit[] {
  const isDefault = (model: string) =>
    model === '' || (cli.name === defaultRoute.cli.name && model === defaultRoute.model);
  const publicName = (model: string) => cli.publicName(model) || (choice.fallback ?? choice.label ?? 'default');
  return cli.health.circuits.status.flatMap(({ state, model, reason, until }) => {
    if (state !== 'open' || reason === null || !(model === null || isDefault(model))) return [];
    return [{ model: model === null ? null : publicName(model), reason, until }];
  });
}

/**
 * Returns the reasons of one CLI. A check that failed only because of an open circuit is omitted, because the circuit
 * is listed.
 */
function reasonsOfCli(cli: ModelCli, open: readonly OpenCircuit[]): ReasonBody[] {
  const entry = cli.health.checks.current;
  const circuits = open.map((circuit) => reasonOfCircuit(cli, circuit));
  const isSaid = entry.status === 'ready' || (entry.isHeld === true && circuits.length > 0);
  return isSaid ? circuits : [reasonOfCheck(cli, entry), ...circuits];
}

/**
 * Returns the reason that a provider limits requests or is overloaded; empty if it does neither. The reason has no
 * `until`, because jobs are still started.
 */
function shortageOf(cli: ModelCli): ReasonBody[] {
  const { shortage } = cli.health;
  if (shortage === null) return [];
  const { reason, until } = shortage;
  const what = reason === 'quota' ? 'limits requests' : 'is overloaded';
  const message = `the provider of ${subjectOf(cli)} ${what}: jobs wait or fail until ${timestamp(until)}`;
  return [{ part: reason, name: cli.label, message }];
}

function reasonOfCheck(cli: ModelCli, { status, error }: ReadinessEntry): ReasonBody {
  const verdict = status === 'unknown' ? 'has not been checked yet' : 'is not ready';
  const why = error === null ? '' : `: ${error}`;
  return { part: 'cli', name: cli.label, message: `${subjectOf(cli)} ${verdict}${why}` };
}

function reasonOfCircuit(cli: ModelCli, { model, reason, until }: OpenCircuit): ReasonBody {
  const ends = until === null ? {} : { until: timestamp(until) };
  const name = model ?? cli.label;
  if (reason === 'auth')
    return { part: 'cli', name, message: `the credential of ${subjectOf(cli)} is refused`, ...ends };
  const what = model === null ? 'its quota' : `its quota for ${model}`;
  return { part: 'quota', name, message: `${accountWords(cli)} has used up ${what}`, ...ends };
}

function subjectOf(cli: ModelCli): string {
  return cli.account.name === null ? `the model CLI ${cli.name}` : accountWords(cli);
}

function accountWords({ name, account }: ModelCli): string {
  return `the account ${account.name === null ? '' : `${account.name} `}of the model CLI ${name}`;
}
