/** The suite of deploy/monitoring: promtool, and a real Prometheus that scrapes the service. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/monitoring'],
  testPathIgnorePatterns: [],
  testTimeout: 180_000,
  maxWorkers: 1,
};
