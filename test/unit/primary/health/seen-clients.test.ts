import { SeenClients } from '../../../../src/primary/health/evidence.js';

describe('The clients seen recently', () => {
  it('can accuse the CLI alone if there is only one, and otherwise in pairs', () => {
    const clients = new SeenClients();
    expect(
      ['user ada', 'user ada', 'user bob', 'user ada', 'user eve'].map((client) => clients.recordClient(client)),
    ).toEqual([...[false, false], ...[true, false, false]]);
    expect([clients.mayAccuse('user ada'), clients.mayAccuse('user ada', 'user bob')]).toEqual([false, true]);
    const alone = new SeenClients();
    alone.recordClient('user ada');
    expect(alone.mayAccuse('user ada')).toBe(true);
  });

  it('count as one if they use the same key', () => {
    const clients = new SeenClients();
    for (const client of ['key bot/a', 'key bot/b', 'key bot']) expect(clients.recordClient(client)).toBe(false);
    expect(clients.mayAccuse('key bot/a')).toBe(true);
    expect(clients.recordClient('user bot')).toBe(true);
    expect(clients.mayAccuse('key bot/a', 'key bot/b')).toBe(false);
  });
});
