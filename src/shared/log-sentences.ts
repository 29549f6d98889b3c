import type { LogEvent } from './logger.js';
import type { Paint } from './paint.js';

type Field = string | number | boolean | null | undefined;
/** The fields of a record, with nothing in them that steers a terminal. */
type Fields = Readonly<Record<string, Field>>;
export type LogSentence = (fields: Fields) => string;

/** What people read of an event. One that is not here is shown as its name and its fields. */
export const logSentences: Readonly<Partial<Record<LogEvent, LogSentence>>> = {
  config_warning: ({ warning }) => `Warning: ${warning}`,
  config_invalid: ({ error }) => `Fault: ${error}`,
  service_start: ({ version, adapter, workers }) =>
    `prompt-relay ${version} starts: ${adapter}, ${counted(workers, 'worker')}`,
  store_opened: ({ store, conversations }) => `Store ${store}: ${counted(conversations, 'conversation')} taken over.`,
  store_down: ({ error }) => `The store takes nothing any more, conversations fail: ${error}`,
  store_warning: ({ error }) => `Warning: the store: ${error}`,
  store_back: () => 'The store is back.',
  keys_loaded: ({ keys }) => `The keys file has changed: ${counted(keys, 'key')} in force.`,
  keys_rejected: ({ error }) => `The keys file has a fault, the keys stay as they were: ${error}`,
  cli_text_ignored: ({ cli }) => `${cli} says something before it is asked: that is in no answer.`,
  cli_request_refused: ({ cli, request }) => `${cli} asked for what it is not given: ${request}.`,
  tools_ignored: ({ client, path }) => `${client} offers tools to the model, which are ignored (${path}).`,
  wrong_keys: ({ client, seconds }) => `Too many wrong API keys from ${client}: refused for ${seconds} s.`,
  reload_start: () => 'Reload: the workers are being replaced.',
  reload_complete: () => 'Reload: all workers have been replaced.',
  readiness_checked: ({ cli, status, error, check_ms: ms }) => {
    const name = cli === undefined ? 'The model CLI' : `The model CLI ${cli}`;
    return status === 'ready' ? `${name} is ready (checked in ${ms} ms).` : `${name} is not ready: ${error}`;
  },
  orphans_reaped: ({ processes }) => `Ended ${counted(processes, 'process', 'processes')} of a service that had died.`,
  worker_gone: ({ worker, code, signal }) => `Worker ${worker} is gone (${signal ?? `code ${code}`}).`,
  workers_unavailable: ({ reason }) => `The service gives up: ${reason}`,
  listen_failed: ({ error }) => String(error),
  breaker_open: ({ reason, model, until }) =>
    `Jobs${model ? ` for ${model}` : ''} are held back (${reason})${until ? ` until ${until}` : ''}.`,
  breaker_closed: ({ model }) => `Jobs${model ? ` for ${model}` : ''} are let through again.`,
  quota_warning: (fields) => `A window of the account's quota is nearly used up: ${listOf(fields)}`,
  cli_failed: ({ request_id: id, code, reason, stderr }) =>
    `A job failed: ${code}${reason ? ` (${reason})` : ''}, request ${id}${stderr ? `. It wrote: ${stderr}` : ''}`,
  shutdown_start: ({ signal, running, queued }) =>
    Number(running) + Number(queued) === 0
      ? `The service shuts down (${signal}).`
      : `The service shuts down (${signal}): ${running} running and ${queued} waiting jobs are finished first; once more cuts them.`,
  shutdown_complete: () => 'All work is finished.',
  shutdown_timeout: ({ running, queued }) => `Work was cut: ${running} running and ${queued} waiting jobs.`,
  internal_error: ({ error, request_id: id }) => `A defect, please report it: ${error}${id ? ` (request ${id})` : ''}`,
};

function counted(count: Field, noun: string, nouns = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : nouns}`;
}

function listOf({ window, utilization, resets_at: reset }: Fields): string {
  const used = typeof utilization === 'number' ? `${Math.round(utilization * 100)} % of ${window}` : `${window}`;
  return reset ? `${used}, reset at ${reset}` : used;
}

const pathColumns = 22;

/** Method, path, status, milliseconds, client, and how it ended where that is more than the status. */
export function requestLine(fields: Fields, paint: Paint): string {
  const { method, path, status_code: status, duration_ms: ms, client, outcome, error } = fields;
  const end = outcome ?? error;
  return [
    String(method).padEnd(4),
    String(path).padEnd(pathColumns),
    colourOf(Number(status), paint)(String(status)),
    `${Math.round(Number(ms))} ms`.padStart(9),
    paint.dim(String(client ?? '')),
    end === undefined ? '' : end === 'ok' ? paint.green(end) : paint.yellow(String(end)),
  ]
    .join('  ')
    .trimEnd();
}

function colourOf(status: number, paint: Paint): (text: string) => string {
  if (status >= 500) return paint.red;
  return status >= 400 ? paint.yellow : paint.green;
}
