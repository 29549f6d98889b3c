import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ReasonBody } from '../../src/shared/api/health.js';
import type { SetupReport } from '../../src/shared/api/setup.js';

/** A stand-in for a busy service: what it tells is always the same, so that a screen can be compared with a file. */
export async function stubStatus(isTroubled = false): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((req, res) => {
    const body = bodies(isTroubled)[req.url ?? ''] ?? { error: 'not_found', message: 'no such path', request_id: 'x' };
    res.writeHead('error' in Object(body) ? 404 : 200, { 'Content-Type': 'application/json', Connection: 'close' });
    res.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => new Promise<void>((resolve) => void server.close(() => resolve()));
  return { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close };
}

function ago(seconds: number): string {
  return new Date(Date.now() - seconds * 1000).toISOString();
}

function bodies(isTroubled: boolean): Readonly<Record<string, unknown>> {
  const check = { checked_at: ago(1230), duration_ms: 410, trigger: 'interval', adapter: 'claude', version: '2.1.328' };
  const ready = { ...check, status: 'ready' };
  const version = { name: 'prompt-relay', version: '0.1.0', commit: null, node: 'v20.20.2', termination: 'cgroup' };
  const slots = { active_requests: 2, queued_requests: 3, max_concurrent: 4, max_queue: 100 };
  const observability = {
    started_at: ago(86_400),
    uptime_seconds: 86_400 + 3 * 3600,
    model_runtime: {
      ...slots,
      rejected_total: 0,
      queue_timeouts_total: 0,
      active_ages_ms: [78_700, 68_300],
      ...(isTroubled && { queued_requests: 100, queue_full_since: ago(84), refused_last_5_minutes: 1234 }),
    },
    cli_processes: { standby: 1, live: 2, busy: 2, stopping: 0 },
    workers: [1, 2].map((id) => ({ id, pid: 16_468 + id, state: 'ready', restarts: 0 })),
  };
  const job = { client: 'user ada', operation: 'ask', model: 'opus', started_at: ago(1230) };
  return {
    '/health': {
      status: isTroubled ? 'degraded' : 'ok',
      reasons: isTroubled ? reasonsNow() : [],
      strict_mode: false,
      readiness: { model_cli: ready },
      store: { kind: 'memory', up: true },
      observability,
    },
    '/version': { ...version, model_cli: { adapter: 'claude', version: '2.1.328' }, uptime_seconds: 97_200 },
    '/health/history': { observability, history: [{ ...check, status: 'not_ready', error: 'x' }, ready, ready] },
    '/setup': setup,
    '/status': {
      slots: { max: 4, running: [7, 12].map((id) => ({ ...job, job: id })) },
      queue: { max: 100, waiting: 3, clients: [{ client: 'key bob', waiting: 3, oldest_since: ago(1230) }] },
      background_jobs: { max: 1000, waiting: 12, running: 1 },
      totals: {
        ...{ requests: 1300, jobs: 1234, failed_jobs: 0, cancelled_jobs: 0, refused: 0, output_tokens: 0 },
        ...{ first_deltas: 0, first_delta_seconds: 0 },
      },
    },
  };
}

/** No job is started for ten minutes and a half. */
function reasonsNow(): readonly ReasonBody[] {
  return [
    { part: 'cli', name: 'codex', message: 'the model CLI codex is not ready: the model CLI is not logged in' },
    {
      part: 'quota',
      name: 'claude',
      message: 'the account of the model CLI claude has used up its quota',
      until: ago(-630),
    },
    {
      part: 'store',
      name: 'redis',
      message: 'the store (redis) is down: conversations and background jobs are refused',
    },
  ];
}

const verdict = { adapter: 'claude', version: '2.1.328', ready: true, duration_ms: 410, error: null };

const setup: SetupReport = {
  url: 'http://127.0.0.1:5051',
  socket: null,
  keys: [],
  needs_key: false,
  local_users: 'identify',
  allowed_users: [],
  workers: 2,
  max_concurrent: 4,
  max_queue: 100,
  queue_timeout_ms: 120_000,
  execution_timeout_ms: 120_000,
  model_cli: { ...verdict, command: ['/usr/local/bin/claude', '--model', 'opus'] },
  models: [],
  termination: { means: 'cgroup', no_cgroup: null },
  store: { kind: 'memory', place: null },
  warnings: [],
};
