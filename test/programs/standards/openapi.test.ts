import { join } from 'node:path';
import { openApiPath, root } from '../../support/documents/sources.js';
import { ofRedocly, ofSpectral } from './expected.js';
import { runSuite } from './foreign-suite.js';

interface Redocly {
  readonly totals: { readonly errors: number };
  readonly problems: readonly { readonly ruleId: string; readonly message: string }[];
}

interface Fault {
  readonly code: string;
  readonly message: string;
  readonly path: readonly string[];
}

const rules = join(root, 'test', 'programs', 'standards', 'spectral.yaml');

describe('The OpenAPI document', () => {
  it('has no fault in Redocly CLI', async () => {
    const args = ['lint', openApiPath, '--extends', 'recommended', '--format', 'json'];
    const { totals, problems } = JSON.parse(await runSuite('redocly', root, args)) as Redocly;
    expect(totals.errors).toBe(0);
    expect(problems.filter(({ ruleId }) => ofRedocly[ruleId] === undefined)).toEqual([]);
    const found = new Set(problems.map(({ ruleId }) => ruleId));
    expect(Object.keys(ofRedocly).filter((rule) => !found.has(rule))).toEqual([]);
  });

  it('has no fault in Spectral', async () => {
    const args = ['lint', '-r', rules, openApiPath, '-f', 'json', '--quiet'];
    const faults = JSON.parse(await runSuite('spectral', root, args)) as Fault[];
    expect(faults.filter(({ code }) => ofSpectral[code] === undefined)).toEqual([]);
  });
});
