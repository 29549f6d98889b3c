import { findFaults } from '../../../../src/features/local-users/shared.js';

it('Allowed users are a fault if the service does not identify users', () => {
  const faultsOf = (mode: 'off' | 'identify', allowed: string[]) =>
    findFaults({ MODEL_API_LOCAL_USERS: mode, MODEL_API_ALLOWED_USERS: allowed });
  expect(faultsOf('off', ['ada'])).toEqual([expect.stringContaining('needs MODEL_API_LOCAL_USERS')]);
  expect([faultsOf('off', []), faultsOf('identify', ['ada'])]).toEqual([[], []]);
});
