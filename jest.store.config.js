/** The suite of the store in a file, under a Node that has SQLite: slow where it kills the service again and again. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/store'],
  testPathIgnorePatterns: [],
  testTimeout: 120_000,
  maxWorkers: 2,
};
