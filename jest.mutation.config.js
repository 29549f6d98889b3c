/** The tests that mutants are held against: those that stand beside the mutated folders. */
module.exports = {
  ...require('./jest.config.js'),
  roots: require('./mutated-folders.cjs').map((folder) => `<rootDir>/dist/test/${folder}`),
  reporters: ['default'],
  testTimeout: 5000, // many a mutant makes a test wait for ever
};
