import { renderSetupReport } from '../../../../src/command/render/operator.js';
import type { SetupReport } from '../../../../src/shared/api/setup.js';
import { paintFor } from '../../../../src/shared/text/paint.js';

const report: SetupReport = {
  url: 'http://127.0.0.1:5051',
  socket: null,
  ollama_url: null,
  keys: [],
  needs_key: false,
  local_users: 'identify',
  allowed_users: [],
  workers: 1,
  max_concurrent: 1,
  max_queue: 1,
  queue_timeout_ms: 1000,
  execution_timeout_ms: 1000,
  model_cli: { adapter: 'demo', command: ['demo'], version: null, ready: true, duration_ms: 1, error: null },
  models: [
    { id: 'eliza', default: true },
    { id: 'echo', default: false },
    { id: 'gpt-4o', default: false, alias_of: 'echo' },
  ],
  termination: { means: 'cgroup', no_cgroup: null },
  store: { kind: 'memory', place: null },
  warnings: [],
};

it('The set-up says which model is the default, and which names stand for others', () => {
  const line = renderSetupReport(report, paintFor(false)).find((each) => each.startsWith('models'));
  expect(line).toMatch(/^models +eliza \(default\), echo, gpt-4o \(stands for echo\)$/);
});
