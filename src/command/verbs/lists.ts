import { type ModelEntry, type ModelList, modelList } from '../../shared/api/models.js';
import { dayQuery, type UsageReport, type UsageRow, usageReport } from '../../shared/api/usage.js';
import { type VersionBody, versionBody } from '../../shared/api/version.js';
import { readProduct } from '../../shared/config/product.js';
import { alignColumns, formatDuration, formatNumber } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import { addressFlags, type Command, type CommandArguments, clientFor, jsonFlag, show } from '../base/command.js';
import { CommandError, exitCodes } from '../base/errors.js';

export const models: Command = {
  name: 'models',
  synopsis: '',
  summary: 'list the models that requests can name; * marks the default',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: 0,
  examples: ['prompt-relay models', 'prompt-relay models --url relay.example.org:5051'],
  run: async (args, context) => {
    const body = await (await clientFor(args, context)).get('/models', modelList);
    return show(args, context.terminal, body, (paint) => renderModels(body, paint));
  },
};

/** Command that prints the version of this program and of the service. Only a service named with --url must answer. */
export const version: Command = {
  name: 'version',
  synopsis: '',
  summary: 'show the version of this command and of the service, if the service answers',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: 0,
  examples: ['prompt-relay version', 'prompt-relay version --url relay.example.org --json'],
  run: async (args, context) => {
    const client = await clientFor(args, context);
    const isNamed = args.value('url') !== undefined;
    const found = isNamed
      ? await client.getState('/version', versionBody)
      : await client.getOptional('/version', versionBody);
    const { version, commit } = readProduct();
    const commandVersion = { version, commit, node: process.version };
    const service = found && { url: client.url, ...found };
    return show(args, context.terminal, { ...commandVersion, service }, () => [
      `prompt-relay ${version}`,
      ...(service === null ? [] : [escaped(`service ${service.version} at ${service.url}, ${clisIn(service)}`)]),
    ]);
  },
};

function clisIn({ model_cli, model_clis }: VersionBody): string {
  return (model_clis ?? [model_cli])
    .map(({ adapter, version }) => `${adapter} ${version ?? 'of unknown version'}`)
    .join(', ');
}

/** Formats a list of models. The ID is in the first column, for use with `cut`. A star marks the default model. */
function renderModels({ models: list }: ModelList, paint: Paint): string[] {
  const rows = list.map(({ id, name, default: isDefault, description, alias_of: target, capabilities }) => [
    id,
    isDefault ? '*' : '',
    abilitiesOf(capabilities),
    target === undefined
      ? [name === id ? '' : name, description ?? ''].filter((text) => text !== '').join(': ')
      : `stands for ${target}`,
  ]);
  return alignColumns(rows.map((row) => row.map(escaped))).map((line, index) =>
    list[index]?.default ? paint.bold(line) : line,
  );
}

/** Lists the features beyond text that requests for a model can use. */
function abilitiesOf(capabilities: ModelEntry['capabilities']): string {
  const { tools, images = false, effort = false } = capabilities ?? {};
  const all = [tools !== undefined && 'tools', images && 'images', effort && 'effort'];
  return all.filter((ability) => ability !== false).join(', ');
}

export const usage: Command = {
  name: 'usage',
  synopsis: '',
  summary: 'show the usage of each client, by day',
  flags: {
    since: { type: 'string', placeholder: '<day>', description: 'first day in UTC, such as 2026-01-31; default: all' },
    until: { type: 'string', placeholder: '<day>', description: 'last day in UTC; default: today' },
    ...jsonFlag,
    ...addressFlags,
  },
  maxPositionals: 0,
  notes: ['Without the scope admin, only your own rows are shown.'],
  examples: ['prompt-relay usage', 'prompt-relay usage --since 2026-01-01 --until 2026-01-31 --json'],
  run: async (args, context) => {
    const path = pathOf(args);
    const report = await (await clientFor(args, context)).getState(path, usageReport);
    return show(args, context.terminal, report, (paint) => renderUsage(report, paint));
  },
};

function pathOf(args: CommandArguments): string {
  const days = ['since', 'until'].flatMap((flag) => {
    const day = args.value(flag);
    if (day === undefined) return [];
    if (dayQuery.safeParse(day).success) return [`${flag}=${day}`];
    throw new CommandError(exitCodes.usage, `--${flag}: must be a day such as 2026-01-31`);
  });
  return days.length === 0 ? '/usage' : `/usage?${days.join('&')}`;
}

const head = [
  'day',
  'client',
  'jobs',
  'failed',
  'cancelled',
  'refused',
  'tokens in',
  'tokens out',
  'cost',
  'model time',
];

function renderUsage({ usage: rows, budgets = [] }: UsageReport, paint: Paint): string[] {
  const [heading = '', ...lines] = alignColumns([head, ...rows.map(cellsOf)]);
  const usageLines = rows.length === 0 ? ['No jobs yet.'] : [paint.dim(heading), ...lines];
  if (budgets.length === 0) return usageLines;
  const [budgetHeading = '', ...budgetLines] = alignColumns([
    ['budget today', 'tokens', 'cost', 'until'],
    ...budgets.map(({ client, tokens, cost_usd: cost, resets_at: until }) => [
      escaped(client),
      tokens === null ? '–' : `${formatNumber(tokens.used)} of ${formatNumber(tokens.max)}`,
      cost === null ? '–' : `$${cost.used.toFixed(2)} of $${cost.max}`,
      escaped(until),
    ]),
  ]);
  return [...usageLines, '', paint.dim(budgetHeading), ...budgetLines];
}

/** Returns the cells of a row. The client's name comes from the service, so its control characters are escaped. */
function cellsOf({ day, client, kind, jobs, refused, tokens, cost_usd, model_seconds }: UsageRow): string[] {
  const all = Object.values(jobs).reduce((sum, count) => sum + count, 0);
  return [
    day,
    escaped(kind === 'other' ? 'all others' : client),
    ...[all, all - jobs.ok - jobs.cancelled, jobs.cancelled, refused, tokens.input, tokens.output].map(formatNumber),
    cost_usd === null ? '–' : `$${cost_usd.toFixed(2)}`,
    formatDuration(model_seconds * 1000),
  ];
}
