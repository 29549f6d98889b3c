import { always, modelsContext, sdkDoor } from '../../../support/doors/sdk-door.js';

const anthropic = { 'anthropic-version': '2023-06-01' };

describe('The list of models', () => {
  it('is sent to OpenAI SDKs, the default first', async () => {
    await using door = await sdkDoor(always());
    const eliza = {
      id: 'eliza',
      object: 'model',
      created: modelsContext.firstStartMs / 1000,
      owned_by: 'prompt-relay',
    };
    expect((await door.get('/v1/models')).body).toEqual({ object: 'list', data: [eliza, { ...eliza, id: 'echo' }] });
    expect((await door.get('/v1/models/eliza')).body).toEqual(eliza);
  });

  it('is sent to Anthropic SDKs', async () => {
    await using door = await sdkDoor(always());
    const unknown = { capabilities: null, max_input_tokens: null, max_tokens: null, line: null };
    const times = { created_at: '2026-01-02T00:00:00.000Z', deprecated_at: null, retires_at: null };
    const eliza = { type: 'model', id: 'eliza', display_name: 'Eliza', lifecycle: 'active', ...times, ...unknown };
    const { headers, body } = await door.get('/v1/models', anthropic);
    const shown = { ...eliza, id: 'anthropic/eliza', alias_of: 'eliza' };
    const ends = { has_more: false, first_id: 'anthropic/eliza', last_id: 'anthropic/echo' };
    expect(body).toMatchObject({ data: [shown, { id: 'anthropic/echo' }], ...ends });
    expect(headers.get('request-id')).toBe(headers.get('x-request-id'));
    expect((await door.get('/v1/models/eliza', anthropic)).body).toEqual(eliza);
  });

  it('does not contain an unknown name, which is an error in the format of the client', async () => {
    await using door = await sdkDoor(always());
    const error = { message: 'no such model', type: 'invalid_request_error', code: 'model_not_found', param: 'model' };
    expect(await door.get('/v1/models/gpt-5')).toMatchObject({ status: 404, body: { error } });
    expect(await door.get('/v1/models/gpt-5', anthropic)).toMatchObject({
      status: 404,
      body: { type: 'error', error: { type: 'not_found_error', message: 'no such model' } },
    });
  });
});
