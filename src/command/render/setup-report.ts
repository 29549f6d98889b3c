import type { CheckReport, SetupReport, TrialAnswer } from '../../shared/api/setup.js';
import { formatCount, formatDuration, formatNumber, labelledRows, shellWord } from '../../shared/text/format.js';
import { type Paint, plain } from '../../shared/text/paint.js';

type ShownCli = SetupReport['model_cli'] & { readonly cli?: string };

/** The output of `check`. */
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
    ...setup.warnings.map((warning): [string, string] => ['warning', paint.yellow(plain(warning))]),
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
    ? paint.red('none in the keys file: nobody is let in')
    : paint.yellow('none: /ask and /chat need no key');
}

/** Who calls without a key. */
function usersOf({ needs_key: needsKey, local_users: mode, allowed_users: allowed }: SetupReport): [string, string][] {
  if (needsKey) return [];
  const whom = allowed.length > 0 ? `only ${allowed.join(', ')}` : mode;
  return [['users', whom]];
}

function readiness({ ready, error, duration_ms: ms }: SetupReport['model_cli'], paint: Paint): string {
  return ready
    ? `${paint.green('yes')} (checked in ${formatDuration(ms)})`
    : `${paint.red('no')}: ${plain(error ?? '')}`;
}

/** The question that was asked, and how it was answered. */
function trialRows(trial: TrialAnswer, paint: Paint): [string, string][] {
  const { question, answer, error, model, deltas, duration_ms: ms, first_delta_ms: firstMs } = trial;
  const took = `in ${formatDuration(ms)}${model === null ? '' : ` by ${plain(model)}`}`;
  const came =
    firstMs === null ? '' : `; first words after ${formatDuration(firstMs)}, ${formatCount(deltas, 'piece')}`;
  const said = answer === null ? `${paint.red('failed')}: ${plain(error ?? '')}` : plain(answer);
  return [
    ['asked', `${question} (this spends tokens)`],
    ['answer', said.replace(/\s+/g, ' ')],
    ['took', took + came],
  ];
}

function storeOf({ kind, place }: SetupReport['store']): string {
  return place === null ? `${kind}: a restart forgets conversations` : `${kind}: ${plain(place)}`;
}

function terminationOf({ means, no_cgroup: reason }: SetupReport['termination']): string {
  if (means === 'cgroup') return 'each in a cgroup of its own';
  return `each in a process group of its own${reason === null ? '' : `; no cgroups: ${plain(reason)}`}`;
}
