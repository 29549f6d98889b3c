import { maxUserConnections, UserConnections } from '../../../../src/primary/access/user-connections.js';

function start() {
  const connections = new UserConnections();
  /** Opens a connection. Resolves with the function that closes it; null if the connection is refused. */
  const open = async (uid: number | null): Promise<(() => Promise<void>) | null> => {
    const caller = new AbortController();
    const held = connections.holdConnection(uid, caller.signal);
    const { value } = await held.next();
    const end = held.next();
    if (value?.isAllowed !== true) return null;
    return async () => {
      caller.abort();
      await end;
    };
  };
  const fill = (uid: number | null) => Promise.all(Array.from({ length: maxUserConnections }, () => open(uid)));
  return { open, fill };
}

describe('The connections of a user', () => {
  it('are limited in number, independently of those of other users', async () => {
    const { open, fill } = start();
    const [close] = await fill(1000);
    expect(await open(1000)).toBeNull();
    expect(await open(1001)).not.toBeNull();
    await close?.();
    expect(await open(1000)).not.toBeNull();
    expect(await open(1000)).toBeNull();
  });

  it('share one limit if their user is unknown', async () => {
    const { open, fill } = start();
    for (const close of await fill(null)) expect(close).not.toBeNull();
    expect(await open(null)).toBeNull();
    expect(await open(0)).not.toBeNull();
  });

  it('that are refused, or closed twice, free no extra place', async () => {
    const { open, fill } = start();
    const all = await fill(1000);
    await open(1000);
    await all[0]?.();
    await all[0]?.();
    expect(await open(1000)).not.toBeNull();
    expect(await open(1000)).toBeNull();
  });
});
