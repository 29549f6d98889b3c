import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { variables } from '../../src/shared/config/variables.js';
import { cliReasons, publicCodes } from '../../src/shared/errors.js';
import { logEvents } from '../../src/shared/log/logger.js';
import { families } from '../support/families.js';
import { tableUnder } from '../support/markdown.js';
import { root } from '../support/sources.js';

const runbook = 'docs/runbook.md';
const errors = 'docs/errors.md';
const text = readFileSync(join(root, runbook), 'utf8');
const alertsFile = join(root, 'deploy', 'monitoring', 'alerts.yml');

function firstColumn(heading: string, file = runbook): string[] {
  return tableUnder(heading, file).map(([first = '']) => first);
}

/** Names in code quotes in the paragraph that begins so. */
function namesInParagraph(start: string): string[] {
  const paragraph = text.split('\n').find((line) => line.startsWith(start)) ?? '';
  return [...paragraph.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name);
}

function headings(): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
}

describe('the runbook', () => {
  it('sends to a page that has every error code, and every reason of cli_error', () => {
    expect(firstColumn('Codes', errors)).toEqual(publicCodes);
    expect(firstColumn('Reasons of cli_error', errors)).toEqual(cliReasons);
  });

  it('has every event of the log: with what to do, or among those that want nothing', () => {
    const events = [...firstColumn('Log events'), ...namesInParagraph('Nothing is to be done for')];
    expect(events.toSorted()).toEqual(Object.keys(logEvents).toSorted());
  });

  it('names only metrics that there are', () => {
    const named = [...text.matchAll(/`model_api_([a-z_]+)/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !(name in families))).toEqual([]);
  });

  it('names only variables that there are', () => {
    const named = [...text.matchAll(/MODEL_[A-Z_]+/g)].map(([name]) => name);
    expect(named.filter((name) => !(name in variables))).toEqual([]);
  });

  const withAlerts = existsSync(alertsFile) ? it : it.skip;
  withAlerts('has a section for every alert, and for no other', () => {
    const alerts = [...readFileSync(alertsFile, 'utf8').matchAll(/- alert: *(\w+)/g)].map(([, name = '']) => name);
    const sections = headings().filter((heading) => heading.startsWith('PromptRelay'));
    expect(alerts.length).toBeGreaterThan(0);
    expect(sections.toSorted()).toEqual(alerts.toSorted());
  });
});
