import type { CheckReport, SetupReport, TrialAnswer } from '../../shared/api/setup.js';
import type { PurgeReport, StoreBackup, StoreReport } from '../../shared/api/store.js';
import type { ApiKey } from '../../shared/config/api-keys.js';
import {
  alignColumns,
  formatCount,
  formatDuration,
  formatNumber,
  labelledRows,
  shellWord,
} from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';

export function renderBackup({ path, bytes, duration_ms: ms }: StoreBackup): string[] {
  return [`${escaped(path)}: ${kilobytes(bytes)} in ${formatDuration(ms)}`];
}

export function renderVerdict(report: StoreReport, paint: Paint): string[] {
  const { faults, path, version, bytes, rows, expired, copies } = report;
  const isWell = faults.length === 0;
  const place = path === null ? report.kind : escaped(path);
  const lines: [string, string][] = [
    ['store', version === null ? place : `${place}, version ${version}, ${kilobytes(bytes)}`],
    ['verdict', isWell ? paint.green('no faults') : paint.red(formatCount(faults.length, 'fault'))],
    ...faults.map((fault): [string, string] => ['fault', paint.red(escaped(fault))]),
    ['rows', countsLine(rows)],
    ['expired', countsLine(expired)],
    ['copies', copies.map(escaped).join(', ')],
  ];
  return labelledRows(
    lines.filter(([, text]) => text !== ''),
    paint.dim,
  );
}

export function renderPurge({ client, removed, copies }: PurgeReport, paint: Paint): string[] {
  const removedCounts = countsLine(removed);
  const left =
    copies.length === 0
      ? []
      : [`may still contain data: ${copies.map(escaped).join(', ')}: remove these files yourself`];
  return [`${escaped(client)}: removed ${removedCounts === '' ? 'nothing' : removedCounts}`, ...left.map(paint.yellow)];
}

function countsLine(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.map(([what, count]) => `${formatNumber(count)} ${escaped(what)}`).join(', ');
}

function kilobytes(bytes: number): string {
  return `${formatNumber(Math.ceil(bytes / 1024))} kB`;
}

/** Returns a key for the JSON output, without digests. */
export function keyJson(key: ApiKey) {
  return {
    name: key.name,
    scopes: key.scopes,
    rate: key.rate && { requests: key.rate.maxRequests, seconds: key.rate.windowMs / 1000 },
    concurrent: key.maxConcurrent,
    queue: key.maxQueued,
    weight: key.weight,
    models: key.models,
    tokens_per_day: key.tokensPerDay,
    cost_per_day: key.costPerDay,
    subclients: key.hasSubclients,
    expires: key.expiresAt === null ? null : dayOf(key.expiresAt),
    previous_expires: key.previous && dayOf(key.previous.expiresAt),
  };
}

/** Formats one line for each key, without digests. The name is in the first column. */
export function renderKeys(keys: readonly ApiKey[], now: number, paint: Paint): string[] {
  const rows = keys.map((key) => [key.name, key.scopes.join('+'), limitsOf(key).join(' ')]);
  return alignColumns(rows).map((line, index) => {
    const expiresAt = keys[index]?.expiresAt ?? null;
    return expiresAt !== null && expiresAt <= now ? `${line} ${paint.red('expired')}` : line;
  });
}

/** Returns the limits of a key in the format of the keys file. */
function limitsOf(key: ApiKey): string[] {
  const { rate, models, expiresAt, previous } = key;
  return [
    ...(rate === null ? [] : [`rate=${rate.maxRequests}/${rate.windowMs / 1000}`]),
    ...(key.maxConcurrent === null ? [] : [`concurrent=${key.maxConcurrent}`]),
    ...(key.maxQueued === null ? [] : [`queue=${key.maxQueued}`]),
    ...(key.weight === null ? [] : [`weight=${key.weight}`]),
    ...(models === null ? [] : [`models=${models.join('+')}`]),
    ...(key.tokensPerDay === null ? [] : [`tokens=${key.tokensPerDay}/day`]),
    ...(key.costPerDay === null ? [] : [`cost=${key.costPerDay}/day`]),
    ...(key.hasSubclients ? ['subclients'] : []),
    ...(expiresAt === null ? [] : [`expires=${dayOf(expiresAt)}`]),
    ...(previous === null ? [] : [`previous=…/${dayOf(previous.expiresAt)}`]),
  ];
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

type ShownCli = SetupReport['model_cli'] & { readonly cli?: string };

export function renderSetupReport(setup: CheckReport, paint: Paint): string[] {
  const { model_cli: cli } = setup;
  const rows: [string, string][] = [
    ['address', [setup.url, ...(setup.socket === null ? [] : [setup.socket])].join(' and ')],
    ...(setup.ollama_url === null ? [] : [['Ollama’s clients', setup.ollama_url] as [string, string]]),
    ['API keys', keysOf(setup, paint)],
    ...usersOf(setup),
    ['workers', formatNumber(setup.workers)],
    ['jobs', `up to ${formatNumber(setup.max_concurrent)} at once, ${formatDuration(setup.execution_timeout_ms)} each`],
    ['queue', `up to ${formatCount(setup.max_queue, 'job')}, ${formatDuration(setup.queue_timeout_ms)} each`],
    ...(setup.model_clis ?? [cli]).flatMap((each) => rowsOf(each, paint)),
    ['models', setup.models.map(modelIn).join(', ')],
    ...(setup.asked === undefined ? [] : trialRows(setup.asked, paint)),
    ['processes', terminationOf(setup.termination)],
    ['store', storeOf(setup.store)],
    ...setup.warnings.map((warning): [string, string] => ['warning', paint.yellow(warning)]),
  ];
  return labelledRows(rows, paint.dim);
}

function rowsOf(cli: ShownCli, paint: Paint): [string, string][] {
  const name = [cli.cli ?? '', cli.adapter === cli.cli ? '' : cli.adapter, cli.version ?? ''];
  return [
    ['model CLI', name.filter((word) => word !== '').join(' ')],
    ['command', cli.command.map(shellWord).join(' ')],
    ['ready', readiness(cli, paint)],
  ];
}

function modelIn({ id, default: isDefault, alias_of: target }: SetupReport['models'][number]): string {
  if (target !== undefined) return `${id} (stands for ${target})`;
  return isDefault ? `${id} (default)` : id;
}

function keysOf({ keys, needs_key: needsKey }: SetupReport, paint: Paint): string {
  if (keys.length > 0) return keys.join(', ');
  return needsKey
    ? paint.red('none in the keys file: every request is refused')
    : paint.yellow('none: /ask and /chat need no key');
}

/** Returns the row of the local users who may call without a key. */
function usersOf({ needs_key: needsKey, local_users: mode, allowed_users: allowed }: SetupReport): [string, string][] {
  if (needsKey) return [];
  const whom = allowed.length > 0 ? `only ${allowed.join(', ')}` : mode;
  return [['users', whom]];
}

function readiness({ ready, error, duration_ms: ms }: SetupReport['model_cli'], paint: Paint): string {
  return ready ? `${paint.green('yes')} (checked in ${formatDuration(ms)})` : `${paint.red('no')}: ${error ?? ''}`;
}

/** Formats the test question and its answer. */
function trialRows(trial: TrialAnswer, paint: Paint): [string, string][] {
  const { question, answer, error, model, deltas, duration_ms: ms, first_delta_ms: firstMs } = trial;
  const duration = `in ${formatDuration(ms)}${model === null ? '' : ` by ${model}`}`;
  const came =
    firstMs === null ? '' : `; first words after ${formatDuration(firstMs)}, ${formatCount(deltas, 'piece')}`;
  const answerText = answer === null ? `${paint.red('failed')}: ${error ?? ''}` : answer;
  return [
    ['asked', `${question} (this spends tokens)`],
    ['answer', answerText.replace(/\s+/g, ' ')],
    ['took', duration + came],
  ];
}

function storeOf({ kind, place }: SetupReport['store']): string {
  return place === null ? `${kind}: a restart forgets conversations` : `${kind}: ${place}`;
}

function terminationOf({ means, no_cgroup: reason }: SetupReport['termination']): string {
  if (means === 'cgroup') return 'each in a separate cgroup';
  return `each in a separate process group${reason === null ? '' : `; cgroups are unavailable: ${reason}`}`;
}
