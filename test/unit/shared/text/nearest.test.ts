import { nearest } from '../../../../src/shared/text/nearest.js';

const known = ['MODEL_API_PORT', 'MODEL_API_HOST', 'MODEL_API_WORKERS', 'MODEL_API_MAX_QUEUE'];

describe('The nearest known name', () => {
  it.each([
    ['MODEL_API_PROT', 'MODEL_API_PORT'],
    ['MODEL_API_POST', 'MODEL_API_PORT'],
    ['MODEL_API_WORKER', 'MODEL_API_WORKERS'],
    ['MODELAPI_HOST', 'MODEL_API_HOST'],
    ['MODEL_API_MAXQUEUE', 'MODEL_API_MAX_QUEUE'],
    ['MODEL_API_HOST', 'MODEL_API_HOST'],
  ])('of %s is %s', (name, expected) => {
    expect(nearest(name, known)).toBe(expected);
  });

  it.each(['', 'X', 'SOMETHING_ELSE_ALTOGETHER'])('does not exist if no name is near: %j', (name) => {
    expect(nearest(name, known)).toBeNull();
  });

  it('does not exist if no name is known', () => {
    expect(nearest('MODEL_API_PORT', [])).toBeNull();
  });

  it('is the first of several equally near names', () => {
    expect(nearest('abd', ['abc', 'abe'])).toBe('abc');
  });
});
