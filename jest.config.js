module.exports = {
  roots: ['<rootDir>/dist/test'],
  testMatch: ['**/*.test.js'],
  testPathIgnorePatterns: ['/claude/', '/dist/test/systemd/'],
  transform: {},
  coverageProvider: 'v8',
  testTimeout: 30_000,
  maxWorkers: 2,
};
