import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { agentLine, HealthAgent } from '../../../../src/features/agent-check/health-agent.js';
import type { FrontSources } from '../../../../src/primary/lifecycle/front.js';
import type { Phase } from '../../../../src/shared/phase.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { until } from '../../../support/basics/until.js';

const idle: FrontSources = {
  supervisor: { phase: 'ready' },
  clis: [{ health: { checks: { current: { status: 'ready' } } } }],
  slots: { active: 0, waiting: 0, limits: { maxActive: 4 } },
};

type Status = FrontSources['clis'][number]['health']['checks']['current']['status'];

function line(slots: Partial<FrontSources['slots']> = {}, phase: Phase = 'ready', ...statuses: Status[]): string {
  const clis = (statuses.length > 0 ? statuses : ['ready' as const]).map((status) => ({
    health: { checks: { current: { status } } },
  }));
  return agentLine({
    supervisor: { phase },
    clis,
    slots: { active: 0, waiting: 0, limits: { maxActive: 4 }, ...slots },
  });
}

describe('The answer to a load balancer', () => {
  it.each([
    [0, 0, 'up ready 100%'],
    [1, 0, 'up ready 80%'],
    [4, 0, 'up ready 50%'],
    [4, 4, 'up ready 33%'],
    [4, 100, 'up ready 4%'],
    [4, 1_000_000, 'up ready 1%'], // 0 would mean a drain
  ])('counts %d that run and %d that wait, on four slots', (active, waiting, said) => {
    expect(line({ active, waiting })).toBe(said);
  });

  it('decreases more slowly than the load increases, so that a delayed load balancer never overshoots', () => {
    const loads = Array.from({ length: 200 }, (_, load) => load);
    const attracted = loads.map((load) => (4 / (4 + load)) * load); // load by leastconn: weight times load
    expect(attracted).toEqual(attracted.toSorted((a, b) => a - b));
  });

  it('diverts all clients, including those with a sticky session, while the host starts, drains or cannot run jobs', () => {
    expect(line({}, 'starting')).toBe('down #starting');
    expect(line({}, 'draining')).toBe('drain down #draining');
    expect(line({}, 'stopped')).toBe('drain down #draining');
    expect(line({}, 'ready', 'not_ready')).toBe('down #model CLI not ready');
  });

  it('revokes the diversion, even before the first check of the model CLI has finished', () => {
    expect(line({}, 'ready', 'unknown')).toBe('up ready 100%');
    expect(line({}, 'ready', 'unknown', 'not_ready')).toBe('up ready 100%');
    expect(line({}, 'ready', 'not_ready', 'ready')).toBe('up ready 100%');
    expect(line({}, 'ready', 'not_ready', 'not_ready')).toBe('down #model CLI not ready');
  });
});

describe('The port for the load balancer', () => {
  const clock = new FakeClock();
  let agent: HealthAgent;

  beforeEach(async () => {
    agent = await HealthAgent.listen('127.0.0.1', 0, clock);
    agent.serve(idle);
  });
  afterEach(() => agent.closePort());

  /** Opens a connection whose client side stays open. */
  async function opened(): Promise<Socket> {
    const socket = connect({ port: agent.port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect');
    return socket;
  }

  async function asked(sent = ''): Promise<string> {
    const socket = await opened();
    socket.write(sent);
    let text = '';
    for await (const piece of socket.setEncoding('utf8')) text += piece;
    socket.destroy();
    return text;
  }

  it('answers each connection with one line and closes it, whatever it receives', async () => {
    expect(await asked()).toBe('up ready 100%\n');
    expect(await asked('GET / HTTP/1.1\r\n\r\n'.repeat(5000))).toBe('up ready 100%\n');
  });

  it('reports that the host is starting until it has other information', async () => {
    using starting = Object.assign(await HealthAgent.listen('127.0.0.1', 0, clock), {
      [Symbol.dispose]() {
        starting.closePort();
      },
    });
    const socket = connect(starting.port, '127.0.0.1').setEncoding('utf8');
    expect(await once(socket, 'data')).toEqual(['down #starting\n']);
    socket.destroy();
  });

  it('closes each connection after a second', async () => {
    const socket = await opened();
    await once(socket.resume(), 'end'); // the client side stays open
    expect(clock.pending).toBe(1);
    await clock.advance(1000);
    expect(clock.pending).toBe(0);
    socket.destroy();
  });

  it('limits the number of open connections, and still answers the next one', async () => {
    const many = await Promise.all(Array.from({ length: 100 }, opened));
    await Promise.all(many.map((socket) => once(socket.on('error', () => {}).resume(), 'end').catch(() => {})));
    expect(await asked()).toBe('up ready 100%\n');
    await until(() => clock.pending <= 32, 'the oldest to be gone');
    for (const socket of many) socket.destroy();
    await until(() => clock.pending === 0, 'all to be gone');
  });

  describe('The health agent of a host that leaves', () => {
    it('reports this, and waits until each load balancer had time to ask', async () => {
      await asked();
      expect(agent.isAsked).toBe(true);
      let hasLeft = false;
      const leaving = agent.leave().then((isMine) => {
        hasLeft = isMine;
      });
      expect(await asked()).toBe('drain down #draining\n');
      await clock.advance(2999);
      expect(hasLeft).toBe(false);
      await clock.advance(1);
      await leaving;
      expect(hasLeft).toBe(true);
      expect([agent.isAsked, await asked()]).toEqual([false, 'drain down #draining\n']);
    });

    it('does not wait if no load balancer has asked, at all or for 10 s', async () => {
      expect(await agent.leave()).toBe(true);
      const other = await HealthAgent.listen('127.0.0.1', 0, clock);
      await once(connect(other.port, '127.0.0.1').resume(), 'close');
      await clock.advance(10_000);
      expect(await other.leave()).toBe(true);
      other.closePort();
    });

    it('ends the wait at a second call', async () => {
      await asked();
      const leaving = agent.leave();
      expect(await agent.leave()).toBe(false);
      expect(await leaving).toBe(true);
      expect(await agent.leave()).toBe(true);
    });
  });

  it('rejects with the error of the system if the port is in use', async () => {
    await expect(HealthAgent.listen('127.0.0.1', agent.port, clock)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});
