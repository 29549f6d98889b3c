import { checkApi } from '../../../../src/features/batches/apis.js';
import { offlineRoutes } from '../../../support/doors/offline-routes.js';

describe('A new batch', () => {
  it.each(['messages', 'chat', 'responses'])('needs the API of its requests: %s', (api) => {
    expect(() => checkApi(api, offlineRoutes)).not.toThrow();
    expect(() => checkApi(api, {})).toThrow(expect.objectContaining({ code: 'not_found' }));
  });
});
