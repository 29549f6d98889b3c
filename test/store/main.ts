import { testUnder } from '../support/other-nodes.js';

/** Two lines of releases that have SQLite, each as new as it was when this was written. */
const versions = ['24.21.0', '22.23.3'];

testUnder(versions, 'jest.store.config.js', process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
