import type { SetupReport } from '../../../src/shared/api/setup.js';

/** Answer of GET /setup for a service with claude and default settings. */
export const setupReport: SetupReport & { readonly ollama_url: string | null } = {
  url: 'http://127.0.0.1:5051',
  socket: null,
  ollama_url: null,
  keys: [],
  needs_key: false,
  local_users: 'identify',
  allowed_users: [],
  workers: 2,
  max_concurrent: 4,
  max_queue: 100,
  queue_timeout_ms: 120_000,
  execution_timeout_ms: 120_000,
  model_cli: {
    adapter: 'claude',
    version: '2.1.328',
    command: ['/usr/local/bin/claude', '--model', 'opus'],
    ready: true,
    duration_ms: 410,
    error: null,
  },
  models: [],
  termination: { means: 'cgroup', no_cgroup: null },
  store: { kind: 'memory', place: null },
  warnings: [],
};
