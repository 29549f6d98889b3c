/** The suite that runs other real model CLIs, each against a stub of its API. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/agents'],
  testPathIgnorePatterns: [],
  testTimeout: 120_000,
  maxWorkers: 1,
};
