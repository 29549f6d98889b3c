/** The suite that runs the real claude program against a stub of its API. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/claude'],
  testPathIgnorePatterns: [],
  testTimeout: 120_000,
  maxWorkers: 1,
};
