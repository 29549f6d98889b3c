import { healthBody } from '../../shared/api/health.js';
import { addressFlags, type Command, type CommandArguments, clientFor, jsonFlag } from '../base/command.js';
import { CommandError, exitCodes } from '../base/errors.js';
import { type ServiceSnapshot, SnapshotReader } from '../base/snapshot.js';
import type { Terminal } from '../base/terminal.js';
import { clisOf, failureLines, readinessLine, renderStatus } from '../render/status.js';
import { LiveView, type ResultPrinter, watch } from './watch.js';

export const status: Command = {
  name: 'status',
  synopsis: '',
  summary: 'show slots, queue, workers, model CLI, checks and totals',
  flags: {
    watch: { type: 'boolean', short: 'w', description: 'refresh the view until Ctrl-C, with rates' },
    interval: {
      type: 'string',
      short: 'n',
      placeholder: '<seconds>',
      description: 'time between refreshes; default: 2',
    },
    ...jsonFlag,
    ...addressFlags,
  },
  maxPositionals: 0,
  notes: ['It exits with 1 if the service is not ok.'],
  examples: [
    'prompt-relay status',
    'prompt-relay status -w',
    'prompt-relay status --url unix:/run/prompt-relay/relay.sock',
  ],
  run: async (args, context) => {
    const { terminal, clock } = context;
    const intervalMs = intervalOf(args);
    const reader = new SnapshotReader(await clientFor(args, context), clock);
    const print = printerFor(args, terminal);
    if (args.has('watch')) return await watch(reader, print, intervalMs, context);
    const snapshot = await reader.read();
    await print(snapshot);
    return snapshot.health.status === 'ok' ? exitCodes.ok : exitCodes.failed;
  },
};

export const recheck: Command = {
  name: 'recheck',
  synopsis: '',
  summary: 'make the service check its model CLI now',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: 0,
  notes: ['It needs an API key, also where the service asks for none otherwise.'],
  examples: ['prompt-relay recheck'],
  run: async (args, context) => {
    const { terminal, clock } = context;
    const health = await (await clientFor(args, context)).post('/health/recheck', healthBody);
    if (args.has('json')) await terminal.writeJson(health);
    else await terminal.writeLines(clisOf(health).map((cli) => readinessLine(cli, clock.now(), terminal.paint)));
    return clisOf(health).every(({ status }) => status === 'ready') ? exitCodes.ok : exitCodes.failed;
  },
};

function printerFor(args: CommandArguments, terminal: Terminal): ResultPrinter {
  if (args.has('json')) return (result) => terminal.writeJson(toJson(result));
  const isRedrawn = args.has('watch') && terminal.isStdoutTty;
  const view = new LiveView(terminal);
  return async (result) => {
    const { paint } = terminal;
    const columns = terminal.isStdoutTty && !isRedrawn ? terminal.columns : Number.POSITIVE_INFINITY;
    const lines =
      result instanceof CommandError ? failureLines(result.message, paint) : renderStatus(result, paint, columns);
    if (isRedrawn) await view.draw([...lines, paint.dim('Press Ctrl-C to exit.')]);
    else await terminal.writeLines(lines);
  };
}

function toJson(result: ServiceSnapshot | CommandError): object {
  if (result instanceof CommandError) return { error: result.message };
  const { url, version, command, health, checks: history, totals, lastHour, change } = result;
  return { url, version, command, health, history, totals, last_hour: lastHour, change };
}

function intervalOf(args: CommandArguments): number {
  const seconds = args.value('interval') ?? '2';
  if (/^\d{1,5}(\.\d{1,3})?$/.test(seconds) && Number(seconds) >= 0.1) return Number(seconds) * 1000;
  throw new CommandError(exitCodes.usage, '--interval: must be a number of seconds, 0.1 or more');
}
