/** The short form of the system suite, which `npm run test:nodes` runs under each version of Node that is supported. */
const short = [
  'ask',
  'conversations',
  'door',
  'http-limits',
  'life',
  'openai-door',
  'package',
  'socket-path',
  'streaming',
  'structured',
];

module.exports = {
  ...require('./jest.config.js'),
  roots: ['<rootDir>/dist/test/system'],
  testMatch: short.map((name) => `**/${name}.test.js`),
  maxWorkers: 2,
};
