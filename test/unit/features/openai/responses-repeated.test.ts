import { responsesRequest } from '../../../../src/features/openai/responses-input.js';
import { repeatedOf } from '../../../../src/features/openai/responses-repeated.js';

function repeated(sent: object, max?: number) {
  return repeatedOf(responsesRequest.parse({ model: 'm', input: 'Hi', ...sent }), max);
}

const nothing = {
  ...{ instructions: null, max_output_tokens: null, metadata: {}, reasoning: { effort: null, summary: null } },
  ...{ temperature: 1, top_p: 1, text: { format: { type: 'text' } }, tool_choice: 'auto', tools: [] },
  ...{ safety_identifier: null, prompt_cache_key: null },
};

describe('The request fields that a response repeats', () => {
  it('have the defaults of the API if the request omits them or sends null', () => {
    expect(repeated({})).toEqual(nothing);
    const nulls = Object.keys(nothing).map((field) => [field, null]);
    expect(repeated({ ...Object.fromEntries(nulls), user: null, parallel_tool_calls: null })).toEqual(nothing);
  });

  it('include each tool of the client with all its fields, and no provider-hosted tool', () => {
    const custom = { type: 'custom', name: 'run', format: { type: 'text' } };
    const plain = { type: 'function', name: 'f' };
    const whole = { description: 'd', parameters: { type: 'object' }, strict: true };
    const sent = [plain, { ...plain, ...whole }, custom, { type: 'web_search' }];
    const { tools } = repeated({ tools: sent });
    expect(tools).toEqual([
      { ...plain, description: null, parameters: null, strict: null },
      { ...plain, ...whole },
      custom,
    ]);
  });

  it('include a schema with all fields of its format', () => {
    const schema = { type: 'object' };
    const format = { type: 'json_schema', name: 'n', schema };
    expect(repeated({ text: { format } }).text).toEqual({ format: { ...format, description: null, strict: false } });
  });

  it('omit each field that is too long, and no other', () => {
    const long = 'x'.repeat(2000);
    const tools = [{ type: 'custom', name: long }];
    const sent = { instructions: long, metadata: { long }, prompt_cache_key: 'k', tools };
    expect(repeated(sent, 1024)).toEqual({ ...nothing, prompt_cache_key: 'k' });
    expect(repeated(sent)).toMatchObject({ instructions: long, metadata: { long } });
  });
});
