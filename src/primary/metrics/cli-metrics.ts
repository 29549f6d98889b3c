import { Registry } from 'prom-client';
import { counter, histogram } from '../../shared/metrics/families.js';
import { type CliObserver, endReasons, exitClasses } from '../cli/observer.js';

const startupBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Counts what happens to the model CLI's processes. */
export function cliMetrics(registry = new Registry()): CliObserver {
  const count = <L extends string>(name: string, help: string, ...labels: L[]) =>
    counter(registry, name, help, ...labels);
  const exits = count('cli_exits_total', 'Model CLI programs that have exited, or did not start.', 'class');
  const kills = count('cli_kills_total', 'Signals sent to model CLIs, by why they were ended.', 'signal', 'reason');
  const orphans = count('orphans_reaped_total', 'Processes that had outlived their program and were ended.');
  const output = count('cli_output_bytes_total', 'Bytes that model CLIs have written.', 'stream');
  const standby = count('standby_total', 'Jobs that found a process started in advance, or did not.', 'result');
  const live = count(
    'live_session_total',
    "Turns that found their conversation's process, or were replayed.",
    'result',
  );
  const startup = 'Time from the start of a process that was started for a job to the first byte it wrote.';
  const startups = histogram(registry, 'cli_startup_seconds', startup, startupBuckets);
  for (const kind of exitClasses) exits.inc({ class: kind }, 0);
  for (const reason of endReasons) {
    for (const signal of ['SIGTERM', 'SIGKILL']) kills.inc({ signal, reason }, 0);
  }
  for (const stream of ['stdout', 'stderr']) output.inc({ stream }, 0);
  for (const result of ['hit', 'miss']) standby.inc({ result }, 0);
  for (const result of ['hit', 'replay']) live.inc({ result }, 0);
  return {
    exited: (kind) => exits.inc({ class: kind }),
    killed: (signal, reason) => kills.inc({ signal, reason }),
    orphansReaped: (processes) => orphans.inc(processes),
    output: (stream, bytes) => output.inc({ stream }, bytes),
    startedUp: (ms) => startups.observe(ms / 1000),
    standbyTaken: (result) => standby.inc({ result }),
    liveSessionTaken: (result) => live.inc({ result }),
    quotaReported() {}, // the breaker's: it knows what is still true at a scrape
  };
}
