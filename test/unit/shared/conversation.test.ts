import { decodeOrigins, originsOf, rootOf } from '../../../src/shared/conversation.js';

describe('The origins of a conversation', () => {
  const root = { id: 'root', origins: null };
  const second = { id: 'second', origins: originsOf(root, 4) };

  it('are the conversations with which it begins, each with the number of messages that both have', () => {
    expect(second.origins).toBe('root 4');
    expect(originsOf(second, 8)).toBe('root 4 second 8');
    expect(decodeOrigins(originsOf(second, 8))).toEqual([
      { id: 'root', messageCount: 4 },
      { id: 'second', messageCount: 8 },
    ]);
    expect(decodeOrigins(null)).toEqual([]);
  });

  it('do not include a conversation that has added nothing', () => {
    expect(originsOf(second, 4)).toBe('root 4');
    expect(originsOf(second, 2)).toBe('root 2');
    expect(originsOf(second, 0)).toBe('root 0');
    expect(originsOf({ id: 'third', origins: 'root 0' }, 2)).toBe('root 0 third 2');
  });

  it('name the same first conversation for all versions', () => {
    expect([root, second, { id: 'x', origins: originsOf(second, 0) }].map(rootOf)).toEqual(['root', 'root', 'root']);
  });
});
