import { type Service, startService } from '../support/service.js';

interface Listed {
  readonly id: string;
  readonly default: boolean;
}

async function listed(service: Service): Promise<readonly Listed[]> {
  return (await service.get('/models')).body.models as Listed[];
}

describe('GET /models', () => {
  it.each([
    [{ MODEL_API_DEFAULT_MODEL: 'claude-opus-4-1' }, ['eliza', 'echo', 'claude-opus-4-1']],
    [{ MODEL_API_ALLOWED_MODELS: 'claude-opus-4-1,echo' }, ['claude-opus-4-1', 'echo']],
  ])('lists what may be asked for, also what the CLI does not list: %j', async (env, ids) => {
    await using service = await startService({ env });
    const models = await listed(service);
    expect(models.map(({ id }) => id)).toEqual(ids);
    expect(models.filter((model) => model.default)).toMatchObject([{ id: 'claude-opus-4-1' }]);
    for (const { id: model } of models) {
      expect((await service.post('/ask', { prompt: 'Hello', model })).body.error).not.toBe('validation_error');
    }
    expect(await service.post('/ask', { prompt: 'Hello', model: 'another' })).toMatchObject({ status: 400 });
  });
});
