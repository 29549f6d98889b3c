import { type CommandArguments, type CommandContext, clientFor, show } from '../../command/base/command.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import { type Retention, retentionBody, route } from './shared.js';

/** Resolves with the exit code. */
export async function showRetention(args: CommandArguments, context: CommandContext): Promise<number> {
  const body = await (await clientFor(args, context)).getState(route, retentionBody);
  return show(args, context.terminal, body, (paint) => renderRetention(body, paint));
}

function renderRetention({ data, store, provider }: Retention, paint: Paint): string[] {
  const stored = data.filter(({ place }) => place !== 'nowhere');
  const others = data.filter(({ place }) => place === 'nowhere').map(({ kind }) => kind);
  return [
    `The store is ${store}.`,
    ...stored.flatMap((entry) => ['', ...linesOf(entry, paint)]),
    ...(others.length > 0 ? ['', escaped(`Not stored with these settings: ${others.join(', ')}.`)] : []),
    ...['', escaped(provider)],
  ];
}

function linesOf(entry: Retention['data'][number], paint: Paint): string[] {
  const rows = [
    ['what', entry.content],
    ['where', entry.place],
    ['how long', entry.kept],
    ['who reads it', entry.readers.join(', ')],
    ['export', entry.export],
    ['delete', entry.deletion],
    ['settings', entry.variables.join(', ')],
  ] as const;
  const shown = rows.filter(([, text]) => text !== null && text !== '');
  return [paint.bold(escaped(entry.kind)), ...shown.map(([label, text]) => escaped(`  ${label.padEnd(13)} ${text}`))];
}
