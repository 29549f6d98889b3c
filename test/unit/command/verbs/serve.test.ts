import { renderSetupReport } from '../../../../src/command/verbs/serve.js';
import type { SetupReport } from '../../../../src/shared/api/setup.js';
import { paintFor } from '../../../../src/shared/text/paint.js';
import { setupReport } from '../../../support/agents/setup-report.js';

it('The set-up shows the default model, and the model aliases', () => {
  const models = [
    { id: 'eliza', default: true },
    { id: 'echo', default: false },
    { id: 'gpt-4o', default: false, alias_of: 'echo' },
  ];
  const report: SetupReport = { ...setupReport, models };
  const line = renderSetupReport(report, paintFor(false)).find((each) => each.startsWith('models'));
  expect(line).toMatch(/^models +eliza \(default\), echo, gpt-4o \(stands for echo\)$/);
});
