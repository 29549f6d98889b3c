import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { addressFault } from '../../../../src/primary/workers/addresses.js';

const front = { number: 5052, variable: 'MODEL_API_AGENT_PORT' };
const added = { number: 11434, variable: 'MODEL_API_ADDED_PORT' };

function fault(code: string, host: string, port: number): Promise<string> {
  const error = Object.assign(new Error(`bind ${code} ${host}:${port}`), { code });
  return addressFault(error, { host, port, socketPath: null, ownPorts: [front], featurePorts: [added] });
}

describe('The message about an address that cannot be used', () => {
  it.each(['127.0.0.1', '::'])('names the process that listens on the port, bound to %s', async (host) => {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const sentence = await fault('EADDRINUSE', '127.0.0.1', port);
    expect(sentence).toMatch(
      new RegExp(`^port ${port} is in use by \\S+ \\(process ${process.pid}\\): end it, or choose`),
    );
    expect(sentence).toContain('MODEL_API_PORT or serve --port');
    server.close();
    await once(server, 'close');
  });

  it('mentions another program if no process can be identified', async () => {
    expect(await fault('EADDRINUSE', '127.0.0.1', 0)).toMatch(/^port 0 is in use by another program: /);
  });

  it.each([
    ['EACCES', 'only root may use port 80: choose another port with MODEL_API_PORT or serve --port, 1024 or above'],
    [
      'EADDRNOTAVAIL',
      '192.0.2.1 is not an address of this machine: set MODEL_API_HOST or serve --host to an address of this machine',
    ],
    ['EMFILE', 'bind EMFILE 192.0.2.1:80'],
  ])('explains what to do about %s', async (code, start) => {
    expect((await fault(code, '192.0.2.1', 80)).startsWith(start)).toBe(true);
  });

  it('names the variable of the port for the load balancer', async () => {
    const taken = Object.assign(new Error('listen EADDRINUSE: address already in use 127.0.0.1:5052'), {
      code: 'EADDRINUSE',
    });
    const wanted = { host: 'localhost', port: 5051, socketPath: null, ownPorts: [front], featurePorts: [added] };
    expect(await addressFault(taken, wanted)).toMatch(
      /^port 5052 is in use by .*: end it, or choose another port with MODEL_API_AGENT_PORT \(listen/,
    );
  });

  it('names the variable of the port of a feature', async () => {
    expect(await fault('EADDRINUSE', '127.0.0.1', 11434)).toMatch(
      /^port 11434 is in use by .*: end it, or choose another port with MODEL_API_ADDED_PORT \(bind/,
    );
  });

  it('explains what to do about a Unix socket, and about an unknown host', async () => {
    const wanted = { host: 'relay', port: 5051, socketPath: '/run/relay.sock', ownPorts: [], featurePorts: [] };
    const noFolder = Object.assign(new Error('bind ENOENT /run/relay.sock'), { code: 'ENOENT' });
    expect(await addressFault(noFolder, wanted)).toBe(
      'the Unix socket of MODEL_API_SOCKET cannot be created: its folder must exist and be writable (bind ENOENT /run/relay.sock)',
    );
    const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND relay'), { code: 'ENOTFOUND' });
    expect(await addressFault(unknown, wanted)).toMatch(
      /^the host relay is unknown: set MODEL_API_HOST or serve --host/,
    );
  });
});
