/** The suite of what people see at a terminal: the golden files of the command, and a service that is started at one. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/terminal'],
  testPathIgnorePatterns: [],
  testTimeout: 60_000,
  maxWorkers: 2,
};
