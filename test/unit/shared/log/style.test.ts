import { logStyleFor } from '../../../../src/shared/log/text.js';

it.each([
  [undefined, true, {}, 'coloured'],
  ['auto', false, {}, 'json'],
  ['auto', true, { NO_COLOR: '1' }, 'plain'],
  ['auto', true, { TERM: 'dumb' }, 'plain'],
  ['text', false, {}, 'plain'],
  ['text', true, {}, 'coloured'],
  ['json', true, {}, 'json'],
  ['nonsense', true, {}, 'coloured'],
])('The style of the log for the format %s, on a terminal: %s, with %j is %s', (format, isTerminal, env, style) => {
  expect(logStyleFor(format, isTerminal, env)).toBe(style);
});
