import { testUnder } from '../support/other-nodes.js';

/** The oldest that package.json allows, and of each later line of releases the newest when this was written. */
const versions = ['20.19.2', '22.23.3', '24.21.0', '26.10.0'];

testUnder(versions, 'jest.nodes.config.js', process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
