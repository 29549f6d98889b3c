import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { type Service, startService } from '../../support/service/service.js';
import { ofMcp } from './expected.js';
import { runSuite } from './foreign-suite.js';

interface Check {
  readonly id: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly errorMessage?: string;
}

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

/** Returns every check of the service that the suite makes in this scenario, as a client of this version. */
async function checksOf(scenario: string, version: string): Promise<Check[]> {
  await using folder = await temporaryFolder();
  const asked = ['--url', `${service.url}/mcp`, '--scenario', scenario, '--spec-version', version];
  await runSuite('mcp', folder.path, ['server', ...asked, '-o', folder.path]);
  const [results = ''] = await readdir(folder.path);
  return JSON.parse(await readFile(join(folder.path, results, 'checks.json'), 'utf8')) as Check[];
}

describe('The conformance suite of the Model Context Protocol', () => {
  it.each([
    ['server-stateless', '2026-07-28'],
    ['http-header-validation', '2026-07-28'],
    ['caching', '2026-07-28'],
    ['tools-list', '2026-07-28'],
    ['dns-rebinding-protection', '2026-07-28'],
    ['ping', '2025-11-25'],
    ['ping', '2025-06-18'],
    ['server-initialize', '2025-11-25'],
    ['tools-list', '2025-11-25'],
    ['tools-list', '2025-06-18'],
    ['dns-rebinding-protection', '2025-11-25'],
  ])('finds only the expected faults in the scenario %s of %s', async (scenario, version) => {
    const checks = await checksOf(scenario, version);
    expect(checks.filter(({ status }) => status === 'SUCCESS').length).toBeGreaterThan(0);
    const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
    const unexpected = failed.filter(({ id }) => ofMcp[scenario]?.[id] === undefined);
    expect(unexpected.map(({ id, errorMessage }) => [id, errorMessage])).toEqual([]);
    const ids = new Set(failed.map(({ id }) => id));
    expect(Object.keys(ofMcp[scenario] ?? {}).filter((id) => !ids.has(id))).toEqual([]);
  });
});
