import type { Inspection } from '../../shared/inspection.js';
import { type Paint, plain } from './paint.js';
import { counted, duration, figure, labelled } from './words.js';

/** What a service would use, a line for each thing. */
export function renderInspection(found: Inspection, paint: Paint): string[] {
  const { model_cli: cli } = found;
  const rows: [string, string][] = [
    ['address', [found.url, ...(found.socket === null ? [] : [found.socket])].join(' and ')],
    ['API keys', found.keys.length > 0 ? found.keys.join(', ') : paint.yellow('none: /ask and /chat are open')],
    ['workers', figure(found.workers)],
    ['jobs', `${figure(found.max_concurrent)} at once, ${duration(found.execution_timeout_ms)} each`],
    ['queue', `${counted(found.max_queue, 'place')}, ${duration(found.queue_timeout_ms)} at most`],
    ['model CLI', [cli.adapter, cli.version ?? ''].join(' ').trimEnd()],
    ['command', cli.command.map(quoted).join(' ')],
    ['models', found.models.map((model) => model.id + (model.default ? ' (default)' : '')).join(', ')],
    ['ready', verdict(cli, paint)],
    ...found.warnings.map((warning): [string, string] => ['warning', paint.yellow(plain(warning))]),
  ];
  return labelled(rows, paint.dim);
}

function verdict({ ready, error, duration_ms: ms }: Inspection['model_cli'], paint: Paint): string {
  return ready
    ? `${paint.green('yes')}, it took ${duration(ms)} to say so`
    : `${paint.red('no')}: ${plain(error ?? '')}`;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./{}-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
