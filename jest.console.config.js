/** The suite that uses the console in a real Chromium. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/console'],
  testPathIgnorePatterns: [],
  testTimeout: 60_000,
  maxWorkers: 2,
};
