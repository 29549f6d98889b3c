/** The suite of what becomes of the processes of the model CLI: on standby, between turns, at a cancel and at the end. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/processes'],
  testPathIgnorePatterns: [],
  maxWorkers: 2,
};
