import { argumentsSchema, calledTool } from '../../../../src/worker/jobs/message-parts.js';

const [weather, time] = [{ name: 'weather' }, { name: 'time' }];

describe('The function to call', () => {
  it('is the one that is named, or the only one where any is asked for', () => {
    expect(calledTool([weather, time], { kind: 'named', name: 'time' })).toBe(time);
    expect(calledTool([weather], { kind: 'any' })).toBe(weather);
  });

  it('is none where the model is free: it just talks', () => {
    expect(calledTool([weather], { kind: 'free' })).toBeNull();
  });

  it.each([
    ['any of several', [weather, time], { kind: 'any' } as const, 'can only require a call where there is one tool'],
    ['any of none', [], { kind: 'any' } as const, 'needs tools'],
    ['one that is not offered', [weather], { kind: 'named', name: 'time' } as const, 'must name one of the tools'],
  ])('is refused where it is %s', (_, tools, wish, message) => {
    expect(() => calledTool(tools, wish)).toThrow(message);
  });

  it('has arguments that are an object, and tells the model what it is for', () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } } };
    expect(argumentsSchema({ ...weather, description: 'of a city', schema })).toEqual({
      ...schema,
      title: 'weather',
      description: 'of a city',
    });
    expect(argumentsSchema(weather)).toEqual({ type: 'object', title: 'weather' });
  });
});
