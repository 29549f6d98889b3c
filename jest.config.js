const { jestConfig } = require('./dist/test/suites.js');

/** `SUITE=faults npx jest leaks` runs tests of another suite than `npm test`. */
module.exports = jestConfig(process.env.SUITE ?? 'test', process.env.VARIANT);
