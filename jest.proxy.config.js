/** The suite of deploy/proxy: Caddy and nginx in front of the service, with TLS. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/proxy'],
  testPathIgnorePatterns: [],
  testTimeout: 60_000,
  maxWorkers: 1,
};
