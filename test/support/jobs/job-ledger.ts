import { type Outcome, outcomes } from '../../../src/shared/job.js';
import { until } from '../basics/until.js';
import { Exposition } from '../documents/exposition.js';
import type { LogRecord, Service } from '../service/service.js';
import type { Fate } from './job-fates.js';

export type Counts = Readonly<Record<Outcome, number>>;

/** Jobs of one run, counted in three ways. The service must log at level debug, and must have no open job. */
export interface Ledger {
  /** Counts of the log: one record `job_ended` per job. */
  readonly logged: Counts;
  /** Counts of /metrics. */
  readonly counted: Counts;
  /** Counts of the clients: surely admitted, refused, and unknown because the connection broke before a first byte. */
  readonly clients: { readonly admitted: number; readonly unknown: number; readonly refused: number };
  /** Contradictions, as sentences. */
  readonly faults: readonly string[];
}

/** `isListed` tells by its ID whether a job must be among the fates. */
export async function ledgerOf(
  service: Service,
  fates: readonly Fate[],
  isListed: (id: string) => boolean = () => true,
): Promise<Ledger> {
  const scrape = new Exposition((await service.get('/metrics')).text);
  const counted = countsOf((outcome) => scrape.sum('jobs_total', { outcome }));
  const ends = () => service.logs.filter(({ event }) => event === 'job_ended');
  // Log records may arrive late. Records that are missing after this are reported as contradictions.
  await until(() => ends().length >= total(counted), 'the log to tell of all jobs').catch(() => {});
  const ended = ends();
  const logged = countsOf((outcome) => ended.filter((record) => record.outcome === outcome).length);
  const clients = {
    admitted: fates.filter(({ wasAdmitted }) => wasAdmitted === true).length,
    unknown: fates.filter(({ wasAdmitted }) => wasAdmitted === null).length,
    refused: fates.filter(({ kind }) => kind === 'refused').length,
  };
  const faults = [
    ...faultsOfCounts(logged, counted),
    ...faultsOfFates(ended, fates, isListed),
    ...faultsOfRequests(service, ended),
  ];
  return { logged, counted, clients, faults };
}

export function total(counts: Counts): number {
  return outcomes.reduce((sum, outcome) => sum + counts[outcome], 0);
}

function countsOf(count: (outcome: Outcome) => number): Counts {
  return Object.fromEntries(outcomes.map((outcome) => [outcome, count(outcome)])) as unknown as Counts;
}

function faultsOfCounts(logged: Counts, counted: Counts): string[] {
  const differ = outcomes.filter((outcome) => logged[outcome] !== counted[outcome]);
  return differ.map((outcome) => `${outcome}: ${logged[outcome]} in the log, ${counted[outcome]} in the metrics`);
}

/** Checks that each job has one end, and that its client received the same outcome. */
function faultsOfFates(
  ended: readonly LogRecord[],
  fates: readonly Fate[],
  isListed: (id: string) => boolean,
): string[] {
  const ends = groupById(ended);
  const faults = fates.flatMap(({ id, kind, outcome, wasAdmitted }) => {
    const endsOfJob = ends.get(id) ?? [];
    if (wasAdmitted === true && endsOfJob.length === 0) return [`${id} was admitted (${kind}), and has no end`];
    if (wasAdmitted === false && endsOfJob.length > 0) return [`${id} was refused, and has an end`];
    const isOther = outcome !== null && endsOfJob[0]?.outcome !== outcome;
    return isOther ? [`${id} was told ${outcome}, and has ended with ${endsOfJob[0]?.outcome}`] : [];
  });
  const known = new Set(fates.map(({ id }) => id));
  const repeated = [...ends].filter(([, { length }]) => length > 1);
  return [
    ...repeated.map(([id, { length }]) => `${id} has ended ${length} times`),
    ...faults,
    ...[...ends.keys()].filter((id) => isListed(id) && !known.has(id)).map((id) => `${id} is nobody’s`),
  ];
}

function groupById(ended: readonly LogRecord[]): Map<string, LogRecord[]> {
  const groups = new Map<string, LogRecord[]>();
  for (const record of ended) {
    const id = record.request_id as string;
    groups.set(id, [...(groups.get(id) ?? []), record]);
  }
  return groups;
}

/** Checks that a worker's request record has the job's outcome, unless the client disconnected at that moment. */
function faultsOfRequests({ logs }: Service, ended: readonly LogRecord[]): string[] {
  const ends = new Map(ended.map(({ request_id, outcome }) => [request_id, outcome]));
  const requests = logs.filter(({ event, outcome }) => event === 'http_request_completed' && outcome !== undefined);
  const differ = requests.filter(
    ({ request_id, outcome }) => outcome !== 'cancelled' && ends.get(request_id) !== outcome,
  );
  return differ.map(
    ({ request_id, outcome }) => `${request_id}: its worker has logged ${outcome}, the primary ${ends.get(request_id)}`,
  );
}
