import { shared } from '../../support/basics/shared.js';
import { type Service, startService } from '../../support/service/service.js';

interface Listed {
  readonly id: string;
  readonly default: boolean;
}

async function listed(service: Service): Promise<readonly Listed[]> {
  return (await service.get('/models')).body.models as Listed[];
}

const allowed = { MODEL_API_ALLOWED_MODELS: 'claude-opus-4-1,echo,codex/gpt-5' };
const restricted = shared(() => startService({ env: allowed }));

describe('GET /models', () => {
  it('lists all allowed models, also those that the CLI does not list', async () => {
    const service = await restricted();
    const models = await listed(service);
    expect(models.map(({ id }) => id)).toEqual(['claude-opus-4-1', 'echo', 'codex/gpt-5']);
    expect(models.filter((model) => model.default)).toMatchObject([{ id: 'claude-opus-4-1' }]);
    for (const { id: model } of models) {
      expect((await service.post('/ask', { prompt: 'Hello', model })).body.error).not.toBe('validation_error');
    }
    expect(await service.post('/ask', { prompt: 'Hello', model: 'another' })).toMatchObject({ status: 400 });
  });
});

describe('GET /v1/models/{id}', () => {
  it('accepts a name with a slash, encoded or not', async () => {
    const service = await restricted();
    for (const path of ['codex/gpt-5', 'codex%2Fgpt-5', 'echo']) {
      expect((await service.get(`/v1/models/${path}`)).body).toMatchObject({ id: decodeURIComponent(path) });
    }
    const statuses = { codex: 404, 'codex//gpt-5': 404, 'codex/gpt-5/more': 404, 'codex/%zz': 400 };
    for (const [path, status] of Object.entries(statuses)) {
      expect([path, (await service.get(`/v1/models/${path}`)).status]).toEqual([path, status]);
    }
  });
});
