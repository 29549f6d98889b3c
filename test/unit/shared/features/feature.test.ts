import { askRequest } from '../../../../src/shared/api/ask.js';
import { refusedFieldsOf, withFields } from '../../../../src/shared/features/feature.js';

describe('Tools in a request to the native API', () => {
  const refusalOf = (...toolRoutes: readonly `/${string}`[]) => {
    const body = { prompt: 'Hi', tools: [] };
    return withFields(askRequest, refusedFieldsOf([{ toolRoutes }])).safeParse(body).error?.issues[0]?.message;
  };

  it('are refused with the routes that accept them', () => {
    expect(refusalOf('/v1/a', '/b')).toBe('is only accepted by POST /v1/a, POST /b');
  });

  it('are an unknown field if no route accepts them', () => {
    expect(refusalOf()).toBe('Unrecognized key: "tools"');
  });
});
