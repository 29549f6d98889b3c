import type { Clock } from '../shared/clock.js';
import { addressFlags, type Command, clientOf, type Given, jsonFlag } from './command.js';
import { CommandFault, exitCodes } from './exit-codes.js';
import { LiveView } from './live-view.js';
import { Observer } from './observer.js';
import { renderStatus, type Snapshot } from './render/status.js';
import type { Terminal } from './terminal.js';

export const status: Command = {
  name: 'status',
  takes: '',
  summary: 'show slots, queue, workers, model CLI, checks and totals; exit code 1 when the service is not ok',
  flags: {
    watch: { type: 'boolean', meaning: 'show it again and again, with rates, until Ctrl-C' },
    interval: { type: 'string', value: '<seconds>', meaning: 'time between two looks with --watch; 2 unless given' },
    ...jsonFlag,
    ...addressFlags,
  },
  maxWords: 0,
  run: async (given, surroundings) => {
    const { terminal, clock } = surroundings;
    const intervalMs = intervalOf(given);
    const observer = new Observer(await clientOf(given, surroundings), clock);
    const show = presenter(given, terminal);
    if (given.has('watch')) return await watch(observer, show, { clock, terminal, intervalMs });
    const snapshot = await observer.look();
    await show(snapshot);
    return snapshot.health.status === 'ok' ? exitCodes.ok : exitCodes.failed;
  },
};

/** Shows a look at the service, or why there is none. */
type Show = (seen: Snapshot | CommandFault) => Promise<void>;

function presenter(given: Given, terminal: Terminal): Show {
  if (given.has('json')) return (seen) => terminal.json(jsonOf(seen));
  const isRedrawn = given.has('watch') && terminal.isScreen;
  const view = new LiveView(terminal);
  return async (seen) => {
    const { paint } = terminal;
    const lines = seen instanceof CommandFault ? [paint.red(seen.message)] : renderStatus(seen, paint);
    if (isRedrawn) await view.draw([...lines, paint.dim('Ctrl-C ends this view')]);
    else for (const line of lines) await terminal.line(line);
  };
}

function jsonOf(seen: Snapshot | CommandFault): object {
  if (seen instanceof CommandFault) return { error: seen.message };
  const { url, version, health, checks: history, totals, change } = seen;
  return { url, version, health, history, totals, change };
}

interface Watching {
  readonly clock: Clock;
  readonly terminal: Terminal;
  readonly intervalMs: number;
}

/** A service that does not answer may come back: it is looked for until the person has seen enough. */
async function watch(observer: Observer, show: Show, { clock, terminal, intervalMs }: Watching): Promise<number> {
  const ending = new AbortController();
  using _ = terminal.onInterrupt(() => ending.abort());
  while (!ending.signal.aborted) {
    const seen = await observer.look(ending.signal).catch((error: unknown) => {
      if (error instanceof CommandFault || ending.signal.aborted) return error as CommandFault;
      throw error;
    });
    if (!ending.signal.aborted) await show(seen);
    await pause(clock, intervalMs, ending.signal);
  }
  return exitCodes.ok;
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      stop();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const stop = clock.after(ms, end);
    signal.addEventListener('abort', end, { once: true });
  });
}

function intervalOf(given: Given): number {
  const seconds = given.text('interval') ?? '2';
  if (/^\d{1,5}(\.\d{1,3})?$/.test(seconds) && Number(seconds) >= 0.1) return Number(seconds) * 1000;
  throw new CommandFault(exitCodes.usage, '--interval: must be a number of seconds, 0.1 or more');
}
