import { clip, paintFor, plain, plainJson } from '../../../../src/shared/text/paint.js';

describe('The paint functions', () => {
  const paint = paintFor(true);

  it('leave text unchanged without colours', () => {
    expect(Object.values(paintFor(false)).map((style) => style('text'))).toEqual(Array(6).fill('text'));
  });

  it('clip a line to the visible columns, and preserve its colour codes', () => {
    const line = `ab${paint.red('cdef')}gh`;
    expect(clip(line, 8)).toBe(line);
    expect(clip(line, 4)).toBe(`ab${paint.red('c')}…`);
    expect(clip('žluť🐎kůň', 6)).toBe('žluť🐎…');
  });

  it('remove control characters from untrusted text', () => {
    expect(plain('a\u001b[2Jb\u0007\u009b31mc\r\n\td')).toBe('a[2Jb31mc\n\td');
  });

  it('escape control characters in JSON, and nothing else', () => {
    const value = { 'k\u009b': 'a\u001b[2Jb\u0007\u007f\u0080\u009b31m\u009f\u00a0é\n"' };
    const json = plainJson(value);
    expect(json).toBe(String.raw`{"k\u009b":"a\u001b[2Jb\u0007\u007f\u0080\u009b31m\u009f${'\u00a0é'}\n\""}`);
    expect(JSON.parse(json)).toEqual(value);
  });
});
