import { promptTexts } from '../../../../src/features/anthropic/prompt-texts.js';

describe('The texts of a prompt', () => {
  it('are those that the model reads, with each tool as JSON', () => {
    const texts = promptTexts({
      ...{ system: 'Be kind.', schema: null, text: 'So?' },
      results: [{ id: '1', text: 'Rain', isError: false }],
      history: [{ role: 'assistant', text: 'I look.', calls: [{ id: '1', name: 'weather', input: '{}' }] }],
      offer: { tools: [{ name: 'a', description: 'b"', schema: '{"c":1}' }], choice: 'auto', isParallel: true },
    });
    const tool = '{"name":"a","description":"b\\"","input_schema":{"c":1}}';
    expect(texts).toEqual(['Be kind.', 'I look.', '{}', 'So?', 'Rain', '', tool]);
  });
});
