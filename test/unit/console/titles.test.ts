import { consolePart } from '../../support/clients/console-parts.js';

const entry = consolePart<{ withoutMarks(text: string): string }>('conversations/entry.mjs');

describe('The title of a conversation', () => {
  it.each([
    ['**Tides** and `moons`', 'Tides and moons'],
    ['## A *long* answer[^1]', 'A long answer'],
    ['see [the page](https://example.org) now', 'see the page now'],
    ['2**3 = 8, a * b and 2*3*4', '2**3 = 8, a * b and 2*3*4'],
    ['f(*args, **kw) in C# is #1', 'f(*args, **kw) in C# is #1'],
  ])('of %s is %s', async (message, title) => {
    expect((await entry).withoutMarks(message)).toBe(title);
  });
});
