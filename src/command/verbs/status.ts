import { healthBody } from '../../shared/api/health.js';
import { orAborted } from '../../shared/async.js';
import { delay } from '../../shared/clock.js';
import { clip } from '../../shared/text/paint.js';
import {
  addressFlags,
  type Command,
  type CommandArguments,
  type CommandContext,
  clientFor,
  jsonFlag,
} from '../base/command.js';
import { CommandError, exitCodes } from '../base/errors.js';
import { type ServiceSnapshot, SnapshotReader } from '../base/snapshot.js';
import type { Terminal } from '../base/terminal.js';
import { clisOf, failureLines, readinessLine, renderStatus } from '../render/status.js';

/** Prints a snapshot, or the error that prevented it. */
type ResultPrinter = (result: ServiceSnapshot | CommandError) => Promise<void>;

/** Prints snapshots until Ctrl-C. Continues after errors, because the service may recover. */
async function watch(
  reader: SnapshotReader,
  print: ResultPrinter,
  intervalMs: number,
  { terminal, clock }: CommandContext,
): Promise<number> {
  const ending = new AbortController();
  using _ = terminal.onInterrupt(() => ending.abort());
  while (!ending.signal.aborted) {
    const result = await reader.read(ending.signal).catch((error: unknown) => {
      if (error instanceof CommandError || ending.signal.aborted) return error as CommandError;
      throw error;
    });
    if (!ending.signal.aborted) await print(result);
    await orAborted(delay(clock, intervalMs), ending.signal).catch(() => {});
  }
  return exitCodes.ok;
}

const csi = '\u001b[';

/** Owns the last lines of the terminal, and redraws them in place. */
class LiveView {
  readonly #terminal: Terminal;
  #drawnLines = 0;
  #size = '';

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  async draw(lines: readonly string[]): Promise<void> {
    const { columns, rows } = this.#terminal;
    const visible = lines.slice(0, rows - 1).map((line) => `${clip(this.#terminal.safeLine(line), columns)}${csi}K\n`);
    await this.#terminal.writeText(`${this.#moveToStart(`${columns}x${rows}`)}${visible.join('')}${csi}J`);
    this.#drawnLines = visible.length;
  }

  /**
   * Returns the escape sequence that moves the cursor to the first line of the view. A resize wraps old lines anew and
   * so loses their position: then the screen is cleared.
   */
  #moveToStart(size: string): string {
    const isResized = this.#size !== '' && this.#size !== size;
    this.#size = size;
    if (isResized) return `${csi}H${csi}2J`;
    return this.#drawnLines === 0 ? '' : `${csi}${this.#drawnLines}A\r`;
  }
}

export const status: Command = {
  name: 'status',
  synopsis: '',
  summary: 'show slots, queue, workers, model CLI, checks and totals',
  flags: {
    watch: { type: 'boolean', short: 'w', description: 'refresh the view with rates until Ctrl-C' },
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
  notes: ['The exit code is 1 if the service is degraded.'],
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
  notes: ['This command always needs an API key, even if other requests need none.'],
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
  const { url, version, command, health, checks: history, totals, reserved, change } = result;
  return { url, version, command, health, history, totals, ...(reserved.length > 0 && { reserved }), change };
}

function intervalOf(args: CommandArguments): number {
  const seconds = args.value('interval') ?? '2';
  if (/^\d{1,5}(\.\d{1,3})?$/.test(seconds) && Number(seconds) >= 0.1) return Number(seconds) * 1000;
  throw new CommandError(exitCodes.usage, '--interval: must be a number of seconds, 0.1 or more');
}
