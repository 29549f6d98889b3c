import { Registry } from 'prom-client';
import { counter, histogram } from '../../shared/metrics.js';
import { requestKinds } from '../cli/contract/adapter.js';
import { type CliObserver, endReasons, exitClasses, processSources } from '../cli/contract/observer.js';

const startupBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const holdBuckets = [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800];

/**
 * Returns observers that count the events of the processes of each model CLI, by the name of the CLI and of the
 * account. The login of the service has an empty name, and no label for it.
 */
export function cliMetrics(registry = new Registry()): (cli: string, account?: string) => CliObserver {
  const count = <L extends string>(name: string, help: string, ...labels: L[]) =>
    counter<L | 'cli' | 'account'>(registry, name, help, 'cli', 'account', ...labels);
  const exits = count('cli_exits_total', 'Model CLI programs that have exited, or did not start.', 'class');
  const signals = 'Signals sent to model CLIs, by the reason for ending them.';
  const kills = count('cli_kills_total', signals, 'signal', 'reason');
  const orphans = count('orphans_reaped_total', 'Processes that outlived their program and were ended.');
  const output = count('cli_output_bytes_total', 'Bytes that model CLIs have written.', 'stream');
  const standby = count('standby_total', 'Jobs that found a process started in advance, or did not.', 'result');
  const turns = "Turns that found their conversation's process, or were replayed.";
  const live = count('live_session_total', turns, 'result');
  const questions = count('questions_total', 'Jobs that got a process, by its source.', 'process');
  const holds = 'Time that a process waited for the results of its calls.';
  const holdTimes = histogram(registry, 'tool_hold_seconds', holds, holdBuckets, 'cli', 'account');
  const refusals = 'Refused requests of model CLIs, by the requested capability.';
  const refused = count('cli_requests_refused_total', refusals, 'request');
  const late = "Messages that the model's API has begun after the end of an answer.";
  const lateMessages = count('cli_late_messages_total', late);
  const startup = 'Time from the start of a process for a job to its first byte of output.';
  const startups = histogram(registry, 'cli_startup_seconds', startup, startupBuckets, 'cli', 'account');
  return (cliName, account = '') => {
    const cli = { cli: cliName, ...(account !== '' && { account }) };
    startups.zero(cli);
    holdTimes.zero(cli);
    for (const request of requestKinds) refused.inc({ ...cli, request }, 0);
    for (const kind of exitClasses) exits.inc({ ...cli, class: kind }, 0);
    for (const reason of endReasons) {
      for (const signal of ['SIGTERM', 'SIGKILL']) kills.inc({ ...cli, signal, reason }, 0);
    }
    for (const stream of ['stdout', 'stderr']) output.inc({ ...cli, stream }, 0);
    for (const result of ['hit', 'miss']) standby.inc({ ...cli, result }, 0);
    for (const process of processSources) questions.inc({ ...cli, process }, 0);
    for (const result of ['hit', 'replay']) live.inc({ ...cli, result }, 0);
    lateMessages.inc(cli, 0);
    orphans.inc(cli, 0);
    return {
      exited: (kind) => exits.inc({ ...cli, class: kind }),
      killed: (signal, reason) => kills.inc({ ...cli, signal, reason }),
      orphansReaped: (processes) => orphans.inc(cli, processes),
      output: (stream, bytes) => output.inc({ ...cli, stream }, bytes),
      startedUp: (ms) => startups.observe(cli, ms / 1000),
      standbyTaken: (result) => standby.inc({ ...cli, result }),
      liveSessionTaken: (result) => live.inc({ ...cli, result }),
      processTaken: (process) => questions.inc({ ...cli, process }),
      toolsHeld: (ms) => holdTimes.observe(cli, ms / 1000),
      requestRefused: (request) => refused.inc({ ...cli, request }),
      textIgnored() {},
      lateMessage: () => lateMessages.inc(cli),
      renewalsPaused() {},
      quotaReported() {}, // counted by the breaker, which knows at a scrape whether a report is still valid
    };
  };
}
