import type { Model } from '../../support/doors/contract/house.js';
import { describeContract } from '../../support/doors/contract/suite.js';
import { fixture, startService, twoWorkers } from '../../support/service/service.js';

const settings: Readonly<Record<Model, Record<string, string>>> = {
  answers: twoWorkers,
  fails: { MODEL_API_CLI_COMMAND: fixture('demo-of-a-kind.js', 'fails') },
  stalls: { MODEL_API_CLI_COMMAND: fixture('demo-of-a-kind.js', 'stalls') },
  missing: { MODEL_API_CLI_COMMAND: '/nonexistent/demo' },
};

describeContract('the demo model', (model, { env, ...options }) =>
  startService({ env: { ...settings[model], ...env }, ...options }),
);
