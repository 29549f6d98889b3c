import { clip, paintFor, plain, plainJson } from '../../../src/command/render/paint.js';
import { aligned, counted, duration, figure, labelled } from '../../../src/command/render/words.js';

describe('words for figures', () => {
  it.each([
    [0, '0 ms'],
    [41.4, '41 ms'],
    [3600, '3.6 s'],
    [15_000, '15 s'],
    [119_999, '2 min'],
    [125_000, '2 min 5 s'],
    [11_520_000, '3 h 12 min'],
    [7_200_000, '2 h'],
    [93_600_000, '1 d 2 h'],
  ])('says %d ms as %s', (ms, words) => {
    expect(duration(ms)).toBe(words);
  });

  it.each([
    [0, '0'],
    [0.254, '0.25'],
    [12.34, '12.3'],
    [1234.5, '1,235'],
  ])('says %d as %s', (value, words) => {
    expect(figure(value)).toBe(words);
  });

  it('counts one and many', () => {
    expect([counted(1, 'job'), counted(0, 'job'), counted(1200, 'job')]).toEqual(['1 job', '0 jobs', '1,200 jobs']);
  });

  it('lines columns up, and ends no line in blanks', () => {
    expect(
      aligned([
        ['eliza', '*', 'Eliza'],
        ['echo', '', ''],
      ]),
    ).toEqual(['eliza  *  Eliza', 'echo']);
    expect(
      labelled([
        ['slots', '1'],
        ['queue of', '2'],
      ]),
    ).toEqual(['slots     1', 'queue of  2']);
  });
});

describe('paint', () => {
  const paint = paintFor(true);

  it('leaves text as it is where colours are not wanted', () => {
    expect(Object.values(paintFor(false)).map((style) => style('text'))).toEqual(Array(6).fill('text'));
  });

  it('cuts a line to the columns that are seen, and closes its colours', () => {
    const line = `ab${paint.red('cdef')}gh`;
    expect(clip(line, 8)).toBe(line);
    expect(clip(line, 4)).toBe(`ab${paint.red('c')}…`);
    expect(clip('žluť🐎kůň', 6)).toBe('žluť🐎…');
  });

  it('keeps what a terminal would obey out of foreign text', () => {
    expect(plain('a\u001b[2Jb\u0007\u009b31mc\r\n\td')).toBe('a[2Jb31mc\n\td');
  });

  it('escapes in JSON what a terminal would obey, and nothing else', () => {
    const value = { 'k\u009b': 'a\u001b[2Jb\u0007\u007f\u0080\u009b31m\u009f\u00a0é\n"' };
    const json = plainJson(value);
    expect(json).toBe(String.raw`{"k\u009b":"a\u001b[2Jb\u0007\u007f\u0080\u009b31m\u009f${'\u00a0é'}\n\""}`);
    expect(JSON.parse(json)).toEqual(value);
  });
});
