import { testUnder } from '../support/other-nodes.js';

/** Two lines of releases that have SQLite, each as new as it was when this was written. */
const newer = '24.21.0';
const older = '22.23.3';
const config = 'jest.store.config.js';

/** Under the older one only what speaks to SQLite itself: the rest is the same code. */
async function main(tests: readonly string[]): Promise<void> {
  await testUnder([newer], config, tests);
  await testUnder([older], config, tests.length > 0 ? tests : ['sqlite.test']);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
