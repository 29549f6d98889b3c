const { reporters, testTimeout: _, maxWorkers: __, ...base } = require('./jest.config.js');

/** The suite that runs the real claude program against a stub of its API: whole with the newest, and its adapter with older ones. */
const newest = { ...base, roots: ['<rootDir>/dist/test/claude'], testPathIgnorePatterns: [], displayName: 'newest' };
const older = ['2.1.328', '2.1.197'].map((version) => ({
  ...newest,
  displayName: version,
  globals: { testedClaude: version },
  testMatch: ['**/adapter.test.js', '**/told.test.js'],
}));

module.exports = { projects: [newest, ...older], reporters, testTimeout: 120_000, maxWorkers: 1 };
