import type { Counter, Histogram, Registry } from 'prom-client';
import { counter, histogram } from '../../shared/metrics.js';
import { type CliObserver, type EndReason, type ExitClass, endReasons, exitClasses } from '../cli/cli-observer.js';
import type { ShelfObserver } from '../cli/shelf.js';

const startupBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Owns what is counted of the model CLI's processes. */
export class CliMetrics implements CliObserver, ShelfObserver {
  readonly #exits: Counter<'class'>;
  readonly #kills: Counter<'signal' | 'reason'>;
  readonly #orphans: Counter;
  readonly #output: Counter<'stream'>;
  readonly #startup: Histogram;
  readonly #standby: Counter<'result'>;
  readonly #live: Counter<'result'>;

  constructor(registry: Registry) {
    const count = <L extends string>(name: string, help: string, ...labels: L[]) =>
      counter(registry, name, help, ...labels);
    this.#exits = count(
      'cli_exits_total',
      'Model CLI programs that have exited, and those that did not start.',
      'class',
    );
    this.#kills = count(
      'cli_kills_total',
      'Signals sent to process groups, by why they were ended.',
      'signal',
      'reason',
    );
    this.#orphans = count('orphans_reaped_total', 'Processes that had outlived their program and were ended.');
    this.#output = count('cli_output_bytes_total', 'Bytes that model CLIs have written.', 'stream');
    this.#standby = count(
      'standby_total',
      'Jobs that found a process started in advance, and those that did not.',
      'result',
    );
    this.#live = count(
      'live_session_total',
      "Turns that found their conversation's process, and those replayed.",
      'result',
    );
    const startup = 'Time from the start of a process that was started for a job to the first byte it wrote.';
    this.#startup = histogram(registry, 'cli_startup_seconds', startup, startupBuckets);
    this.#addZeros();
  }

  exited(kind: ExitClass): void {
    this.#exits.inc({ class: kind });
  }

  killed(signal: 'SIGTERM' | 'SIGKILL', reason: EndReason): void {
    this.#kills.inc({ signal, reason });
  }

  orphansReaped(count: number): void {
    this.#orphans.inc(count);
  }

  output(stream: 'stdout' | 'stderr', bytes: number): void {
    this.#output.inc({ stream }, bytes);
  }

  startedUp(ms: number): void {
    this.#startup.observe(ms / 1000);
  }

  standbyTaken(result: 'hit' | 'miss'): void {
    this.#standby.inc({ result });
  }

  liveSessionTaken(result: 'hit' | 'replay'): void {
    this.#live.inc({ result });
  }

  #addZeros(): void {
    for (const kind of exitClasses) this.#exits.inc({ class: kind }, 0);
    for (const signal of ['SIGTERM', 'SIGKILL'])
      for (const reason of endReasons) this.#kills.inc({ signal, reason }, 0);
    for (const stream of ['stdout', 'stderr']) this.#output.inc({ stream }, 0);
    for (const result of ['hit', 'miss']) this.#standby.inc({ result }, 0);
    for (const result of ['hit', 'replay']) this.#live.inc({ result }, 0);
  }
}
