import type { SetupReport } from '../../shared/api/setup.js';
import { formatCount, formatDuration, formatNumber, labelledRows } from '../../shared/format.js';
import { type Paint, plain } from '../../shared/paint.js';
import { shellWord } from './shell.js';

/** The output of `check`. */
export function renderSetupReport(setup: SetupReport, paint: Paint): string[] {
  const { model_cli: cli } = setup;
  const rows: [string, string][] = [
    ['address', [setup.url, ...(setup.socket === null ? [] : [setup.socket])].join(' and ')],
    ['API keys', keysOf(setup, paint)],
    ...usersOf(setup),
    ['workers', formatNumber(setup.workers)],
    ['jobs', `up to ${formatNumber(setup.max_concurrent)} at once, ${formatDuration(setup.execution_timeout_ms)} each`],
    ['queue', `up to ${formatCount(setup.max_queue, 'job')}, ${formatDuration(setup.queue_timeout_ms)} each`],
    ['model CLI', [cli.adapter, cli.version ?? ''].join(' ').trimEnd()],
    ['command', cli.command.map(shellWord).join(' ')],
    ['models', setup.models.map((model) => model.id + (model.default ? ' (default)' : '')).join(', ')],
    ['ready', readiness(cli, paint)],
    ['processes', terminationOf(setup.termination)],
    ...setup.warnings.map((warning): [string, string] => ['warning', paint.yellow(plain(warning))]),
  ];
  return labelledRows(rows, paint.dim);
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

function terminationOf({ means, no_cgroup: reason }: SetupReport['termination']): string {
  if (means === 'cgroup') return 'each in a cgroup of its own';
  return `each in a process group of its own${reason === null ? '' : `; no cgroups: ${plain(reason)}`}`;
}
