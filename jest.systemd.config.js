/** The suite that runs the units of deploy/systemd under a real systemd in namespaces of its own. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/systemd'],
  testPathIgnorePatterns: [],
  testTimeout: 60_000,
  maxWorkers: 1,
};
