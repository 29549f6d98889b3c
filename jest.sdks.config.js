/** The suite that calls the service through the SDKs that people use, under a newer Node. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/sdks'],
  testPathIgnorePatterns: [],
  testTimeout: 40_000,
  maxWorkers: 1,
};
