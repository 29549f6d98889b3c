import { isDemand } from '../../../../../src/primary/cli/contract/model-rules.js';

describe('A choice of tools', () => {
  it.each([
    ['auto', false],
    ['none', false],
    ['required', true],
    [{ name: 'note' }, true],
  ] as const)('demands a call only if the model may not answer without one: %j', (choice, expected) => {
    expect(isDemand({ tools: [], choice, isParallel: true })).toBe(expected);
  });
});
