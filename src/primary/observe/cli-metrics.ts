import { Registry } from 'prom-client';
import type { LoginNames } from '../../shared/health.js';
import { counter, histogram } from '../../shared/metrics.js';
import { requestKinds } from '../cli/contract/adapter.js';
import { type CliObserver, endReasons, exitClasses, processSources } from '../cli/contract/observer.js';

/** Returns observers that count the events of the processes of each model CLI, by the names of its login. */
export function cliMetrics(registry = new Registry()): (names: LoginNames) => CliObserver {
  const exits = counter(registry, 'cli_exits_total');
  const kills = counter(registry, 'cli_kills_total');
  const orphans = counter(registry, 'orphans_reaped_total');
  const output = counter(registry, 'cli_output_bytes_total');
  const standby = counter(registry, 'standby_total');
  const live = counter(registry, 'live_session_total');
  const questions = counter(registry, 'questions_total');
  const holdTimes = histogram(registry, 'tool_hold_seconds');
  const refused = counter(registry, 'cli_requests_refused_total');
  const lateMessages = counter(registry, 'cli_late_messages_total');
  const startups = histogram(registry, 'cli_startup_seconds');
  return (cli) => {
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
