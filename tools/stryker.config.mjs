import { mutatedFolders } from '../dist/test/suites.js';

/**
 * Configuration of mutation tests: `npm run mutation` for all folders; `MUTATE=primary/jobs npm run mutation` for one
 * folder, only with the tests of this folder, which is much faster.
 */
// biome-ignore lint/style/noDefaultExport: Stryker takes its configuration in no other way.
export default {
  mutate: mutatedFolders.map((folder) => `src/${folder}/**/*.ts`),
  tsconfigFile: 'none', // would be read with an API that TypeScript 7 has removed
  buildCommand: 'tsc',
  disableTypeChecks: '{src,test,bench,tools}/**/*.ts',
  testRunner: 'jest',
  jest: { configFile: 'jest.config.js', enableFindRelatedTests: false },
  coverageAnalysis: 'perTest',
  ignoreStatic: true,
  concurrency: 2,
  timeoutMS: 20_000,
  dryRunTimeoutMinutes: 15,
  ignorePatterns: ['.cache', 'dist', 'reports'],
  reporters: ['clear-text', 'json'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
};
