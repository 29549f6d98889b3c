import { ignoredIn, partFieldIn } from '../../../../src/features/doors/request-fields.js';

it('Ignored fields are listed once for all parts of a list, without empty ones', () => {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`f${index}`, index]));
  const parts = [{ a: 1, known: 1 }, null, { a: 2, b: {}, c: [], d: null, 'e f': 1 }, undefined];
  const names = ['messages.a', 'messages.b', 'messages.(odd name)'];
  expect(ignoredIn('messages', parts, new Set(['known']))).toEqual(names);
  expect(ignoredIn('messages', [many, many], new Set()).length).toBe(40);
});

it('The field of an image is that of the first image', () => {
  const image = { type: 'image' };
  const contents = [
    ['a', 'text'],
    ['b', [null, 5]],
    ['c', [{ type: 'text' }, image, image]],
    ['d', [image]],
  ] as const;
  expect(partFieldIn(contents, 'image')).toBe('c.1');
  expect(partFieldIn(contents.slice(0, 2), 'image')).toBeNull();
});
