/** The fault suite: kills, full disks, hostile clients, on the real service. Slow by nature, so it is not part of `npm test`. */
module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/faults'],
  testPathIgnorePatterns: [],
  testTimeout: 120_000,
  maxWorkers: 2,
};
