import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { SocketTable, type TcpEnds } from '../../../../src/worker/access/user-tables.js';

const heading = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';

function row(ends: string, uid: number, inode: number, state = '01'): string {
  return `   0: ${ends} ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 ${inode} 1 000000002 20 4 30 10 -1\n`;
}

/** Both ends of a connection: client 127.0.0.1:43690, server 127.0.0.1:5051. */
const clientEnd = '0100007F:AAAA 0100007F:13BB';
const serverEnd = '0100007F:13BB 0100007F:AAAA';
const ends: TcpEnds = { localAddress: '127.0.0.1', localPort: 5051, remoteAddress: '127.0.0.1', remotePort: 0xaaaa };

function tableOf(four: string, six = '') {
  const reads: string[] = [];
  const table = new SocketTable(async (path) => {
    reads.push(path);
    return Buffer.from(heading + (path.endsWith('6') ? six : four));
  });
  return { table, reads };
}

describe('The user at the client end of a connection', () => {
  it('is the owner of the client socket, not of the service socket', async () => {
    const { table, reads } = tableOf(row(serverEnd, 1, 11) + row(clientEnd, 1000, 12));
    expect(await table.uidOf(ends)).toBe(1000);
    expect(reads).toEqual(['/proc/self/net/tcp']);
  });

  it('is unknown if the client has closed its end, because the kernel reports such a socket as one of root', async () => {
    expect(await tableOf(row(clientEnd, 0, 0, '04')).table.uidOf(ends)).toBeNull();
    expect(await tableOf(row(clientEnd, 0, 0, '06')).table.uidOf(ends)).toBeNull();
  });

  it('is known while the client has only half-closed', async () => {
    expect(await tableOf(row(clientEnd, 1000, 12, '05')).table.uidOf(ends)).toBe(1000);
  });

  it('is looked up again if the row was missed', async () => {
    const texts = ['', row(clientEnd, 1000, 12)];
    const table = new SocketTable(async (path) =>
      Buffer.from(heading + (path.endsWith('6') ? '' : (texts.shift() ?? ''))),
    );
    expect(await table.uidOf(ends)).toBe(1000);
  });

  it('is found if the client reaches an IPv4 address with an IPv6 socket', async () => {
    const mapped = (end: string) => `0000000000000000FFFF0000${end}`;
    const six = row(`${mapped('0100007F:AAAA')} ${mapped('0100007F:13BB')}`, 1001, 13);
    for (const address of ['127.0.0.1', '::ffff:127.0.0.1']) {
      const { table } = tableOf('', six);
      expect(await table.uidOf({ ...ends, localAddress: address, remoteAddress: address })).toBe(1001);
    }
  });

  it('is unknown if the peer is another machine', async () => {
    const { table, reads } = tableOf(row(clientEnd, 1000, 12));
    for (const remoteAddress of ['192.0.2.1', '2001:db8::1', '::ffff:192.0.2.1']) {
      expect(await table.uidOf({ ...ends, remoteAddress })).toBeNull();
    }
    expect(reads).toEqual([]);
  });

  it('is read once for many simultaneous lookups', async () => {
    const { table, reads } = tableOf(row(clientEnd, 1000, 12));
    const first = table.uidOf(ends);
    const later = Array.from({ length: 50 }, () => table.uidOf(ends));
    expect(new Set(await Promise.all([first, ...later]))).toEqual(new Set([1000]));
    expect(reads.length).toBeLessThanOrEqual(2); // a running read may be older than later requests
  });

  it.each(['127.0.0.1', '127.3.2.1', '::1'])('is the current user for a real connection at %s', async (host) => {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const client = connect({ port, host });
    const [accepted] = (await once(server, 'connection')) as [Socket];
    const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = accepted;
    const uid = await new SocketTable().uidOf({ localAddress, localPort, remoteAddress, remotePort });
    client.destroy();
    accepted.destroy();
    server.close();
    expect(uid).toBe(process.getuid?.());
  });
});
