module.exports = {
  roots: ['<rootDir>/dist/test'],
  testMatch: ['**/*.test.js'],
  testPathIgnorePatterns: [
    '/claude/',
    '/test/monitoring/',
    '/dist/test/console/',
    '/dist/test/systemd/',
    '/dist/test/faults/',
    '/dist/test/sdks/',
    '/dist/test/terminal/',
  ],
  transform: {},
  setupFilesAfterEnv: ['<rootDir>/dist/test/support/second-chance.js'],
  reporters: ['default', '<rootDir>/dist/test/support/second-chance-reporter.js'],
  coverageProvider: 'v8',
  testTimeout: 30_000,
  maxWorkers: 3,
};
