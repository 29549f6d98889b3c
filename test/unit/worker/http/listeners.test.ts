import { type HttpServer, Listeners } from '../../../../src/worker/http/server.js';

/** Server that records its calls. */
class FakeServer {
  readonly told: string[] = [];
  isWhole = true;
  isBroken = false;

  async listen(fd: number): Promise<void> {
    if (this.isBroken) throw new Error(`cannot listen on ${fd}`);
    this.told.push(`listen ${fd}`);
  }

  hurry(maxUnreadMs: number): void {
    this.told.push(`hurry ${maxUnreadMs}`);
  }

  async stop(limitMs: number): Promise<boolean> {
    this.told.push(`stop ${limitMs}`);
    return this.isWhole;
  }

  async retire(limitMs: number): Promise<boolean> {
    this.told.push(`retire ${limitMs}`);
    return this.isWhole;
  }
}

/** Returns a function that returns these servers, one after the other. */
function handing(...servers: readonly FakeServer[]): () => HttpServer {
  const rest = [...servers];
  return () => rest.shift() as unknown as HttpServer;
}

async function open() {
  const servers = [new FakeServer(), new FakeServer()] as const;
  const listeners = new Listeners();
  await listeners.open([3, 5], handing(...servers));
  return { listeners, servers };
}

describe('The listeners of a worker', () => {
  it('consist of one server for each address', async () => {
    const { servers, listeners } = await open();
    expect(servers.map(({ told }) => told)).toEqual([['listen 3'], ['listen 5']]);
    expect([listeners.isClosing, listeners.closing.aborted]).toEqual([false, false]);
  });

  it('cannot be opened if one address cannot be used', async () => {
    const broken = Object.assign(new FakeServer(), { isBroken: true });
    const opened = new Listeners().open([3, 5], handing(new FakeServer(), broken));
    await expect(opened).rejects.toThrow('cannot listen on 5');
  });

  it.each([
    ['stop', true],
    ['stop', false],
    ['retire', true],
    ['retire', false],
  ] as const)('%s together, and report whether all have sent their answers: %p', async (end, isWhole) => {
    const { servers, listeners } = await open();
    servers[1].isWhole = isWhole;
    const ended = listeners.closeServers(end, 1000);
    expect([listeners.isClosing, listeners.closing.aborted]).toEqual([true, true]);
    expect(await ended).toBe(isWhole);
    expect(servers.map(({ told }) => told.at(-1))).toEqual([`${end} 1000`, `${end} 1000`]);
  });

  it('receive a shorter limit for unread answers together', async () => {
    const { servers, listeners } = await open();
    listeners.hurry(1000);
    expect(servers.map(({ told }) => told.at(-1))).toEqual(['hurry 1000', 'hurry 1000']);
  });

  it('that retire can be stopped sooner', async () => {
    const { servers, listeners } = await open();
    await Promise.all([listeners.closeServers('retire', 60_000), listeners.closeServers('stop', 0)]);
    expect(servers[0].told).toEqual(['listen 3', 'retire 60000', 'stop 0']);
  });
});
