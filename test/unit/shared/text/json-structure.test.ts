import { assert, integer, json, jsonValue, property } from 'fast-check';
import { JsonStructure } from '../../../../src/shared/text/json-structure.js';

const maxValues = 50_000;
const maxDepth = 200;

/** Returns the fault of a text that arrives in pieces of this size. */
function faultOf(text: string | Buffer, pieceBytes = 65_536): string | null {
  const structure = new JsonStructure({ maxValues, maxDepth });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const fault = structure.countBytes(bytes.subarray(at, at + pieceBytes));
    if (fault !== null) return fault;
  }
  return null;
}

function repeated(unit: string, count: number): string {
  return unit.repeat(count);
}

/** Counts the elements of lists and the fields of objects as the parser finds them. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inside: unknown[] = Object.values(value);
  return inside.reduce((sum: number, each) => sum + valuesIn(each), inside.length);
}

const tooMany = 'must contain at most 50000 values';
const tooDeep = 'must be nested at most 200 levels deep';
const strange = ['', '\\', '"', '\\"', '[{,}]', '\\\\', 'é', '😀', '\u2028', '[', ',,,,', '\\u005b'];

describe('The structure of a JSON text', () => {
  it.each([
    ['[123456789012345]', false],
    ['[1234567890123456]', true],
    ['[12345678,90123456]', false],
    ['["1234567890123456"]', false],
  ])('shows whether %s has a number that JavaScript may change', (text, isLong) => {
    const structure = new JsonStructure({ maxValues, maxDepth });
    for (const byte of Buffer.from(text)) structure.countBytes(Buffer.of(byte));
    expect(structure.hasLongNumber).toBe(isLong);
  });

  it.each<[string, string, string | null]>([
    ['as many values as may be', `[${repeated('[],', maxValues - 1)}[]]`, null],
    ['one more', `[${repeated('[],', maxValues)}[]]`, tooMany],
    ['as many fields as may be', `{${repeated('"a" : 0,', maxValues - 1)} "b": 0}`, null],
    ['one more field', `{${repeated('"a":0,', maxValues)}"b":0}`, tooMany],
    ['lists of one value', `[${repeated('[ 1 ],', maxValues / 2 - 1)}[1]]`, null],
    ['lists of one value, one more', `[${repeated('[ 1 ],', maxValues / 2)}[1]]`, tooMany],
    ['blanks in what is empty', `[${repeated('[ \n\t\r],', maxValues - 1)}{ }]`, null],
    ['as many levels as may be', repeated('[', maxDepth) + repeated(']', maxDepth), null],
    ['one level more', repeated('{"a":', maxDepth + 1), tooDeep],
    ['levels that were left', repeated('[[]],', maxDepth), null],
    ['brackets and commas in a string', JSON.stringify(repeated('[{,', maxValues)), null],
    ['escapes before the end of a string', `["${repeated('\\\\', 9)}",${repeated('[', maxDepth)}`, tooDeep],
    ['a quote that is escaped', `["${repeated('\\"[', maxDepth)}"]`, null],
  ])('is checked correctly with %s', (_, text, fault) => {
    expect(faultOf(text)).toBe(fault);
    expect(faultOf(text, 7)).toBe(fault);
  });

  it('is the same for pieces of any size, whatever its strings contain', () => {
    const inside = JSON.stringify(Object.fromEntries(strange.map((text) => [text, strange])));
    for (let size = 1; size < 12; size++) {
      expect(faultOf(`${repeated('[', maxDepth - 2)}${inside}`, size)).toBeNull();
      expect(faultOf(`${repeated('[', maxDepth - 1)}${inside}`, size)).toBe(tooDeep);
    }
  });

  it('has as many values as the parser finds', async () => {
    const spaced = (text: string) => text.replaceAll(/\n */g, '\r\n\t ');
    const texts = [
      property(json(), integer({ min: 1, max: 5 }), (text, size) => holdsAsMany(text, size)),
      property(jsonValue(), integer({ min: 1, max: 5 }), (value, size) =>
        holdsAsMany(spaced(JSON.stringify(value, null, 2)), size),
      ),
    ];
    for (const each of texts) await assert(each, { numRuns: 50 });
  });

  /** Expects that the text counts as its number of values: a list up to the limit is accepted, a longer one is not. */
  function holdsAsMany(text: string, size: number): void {
    const others = maxValues - valuesIn(JSON.parse(text)) - 1;
    const [fits, exceeds] = [others, others + 1].map((count) => `[${repeated('0,', count)}${text}]`);
    const bytes = 4096 * size;
    expect([faultOf(fits ?? '', bytes), faultOf(exceeds ?? '', bytes)]).toEqual([null, tooMany]);
  }

  it('ends where a text is not JSON, as it does for the parser', () => {
    expect(faultOf(`]]]]${repeated('[', maxDepth + 4)}`)).toBeNull();
    expect(() => JSON.parse(`]]]]${repeated('[', maxDepth + 4)}`)).toThrow();
    expect(faultOf(Buffer.from([0xff, 0xfe, 0x5b, 0x00]))).toBeNull();
  });
});
