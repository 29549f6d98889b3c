/** The suite of deploy/fleet: three hosts behind a real HAProxy, with a real Redis behind them. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/fleet'],
  testPathIgnorePatterns: [],
  testTimeout: 60_000,
  maxWorkers: 1,
};
