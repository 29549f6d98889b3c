import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express, { type Request } from 'express';
import { addressOf, trustProxies } from '../../../../src/worker/access/authenticate.js';

function requestFrom(ip: string | undefined, remoteAddress?: string): Request {
  return { ip, socket: { remoteAddress } } as Request;
}

describe('The address of a client', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['2001:db8::', '2001:db8:0:0::/64'],
    ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
    ['127.0.0.1', '127.0.0.1'],
    ['127.255.3.41', '127.0.0.1'],
    ['::ffff:127.0.0.9', '127.0.0.1'],
    ['::ffff:7f00:9', '127.0.0.1'],
    ['::1', '127.0.0.1'],
    ['0:0:0:0:0:0:0:1', '127.0.0.1'],
    ['[::1]:443', '127.0.0.1'],
    ['::2', '0:0:0:0::/64'],
    ['::127.0.0.1', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
    ['1:2:3:4:5:6:192.0.2.7', '1:2:3:4::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['192.0.2.7:5678', '192.0.2.7'],
    ['[2001:db8:1:2::6]:443', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::6]', '2001:db8:1:2::/64'],
    ['fe80::2%eth1', 'fe80:0:0:0::/64'],
  ])('of %s is %s', (ip, address) => {
    expect(addressOf(requestFrom(ip))).toBe(address);
  });

  it('is the same for two hosts of one site, and different for the next site', () => {
    const [one, two, other] = ['2001:db8:1:2::a', '2001:db8:1:2:ffff::b', '2001:db8:1:3::a'].map((ip) =>
      addressOf(requestFrom(ip)),
    );
    expect(two).toBe(one);
    expect(other).not.toBe(one);
  });

  it('is the address of the peer if the proxy sends no valid address', () => {
    expect(addressOf(requestFrom('unknown', '::ffff:192.0.2.9'))).toBe('192.0.2.9');
    expect(addressOf(requestFrom('[nonsense]:80', '192.0.2.9'))).toBe('192.0.2.9');
    expect(addressOf(requestFrom(undefined, '192.0.2.9'))).toBe('192.0.2.9');
  });

  it('is local on a Unix socket', () => {
    expect(addressOf(requestFrom(undefined))).toBe('local');
  });
});

describe('The client address behind proxies', () => {
  const app = express();
  trustProxies(app, ['127.0.0.1', '10.0.0.0/8', '2001:db8:aaaa::/48']);
  app.get('/', (req, res) => void res.send(addressOf(req)));
  const server = app.listen(0, '127.0.0.1');
  beforeAll(() => server.listening || once(server, 'listening'));
  afterAll(() => void server.close());

  it.each([
    ['192.0.2.7, 10.0.0.1', '192.0.2.7'],
    ['192.0.2.7, 10.0.0.1:4711', '192.0.2.7'],
    ['192.0.2.7:1, 10.0.0.1:2, 10.0.0.2:3', '192.0.2.7'],
    ['192.0.2.7, [2001:db8:aaaa::1]:443', '192.0.2.7'],
    ['192.0.2.7, [2001:db8:aaaa::1]', '192.0.2.7'],
    ['192.0.2.7, ::ffff:10.0.0.1:80', '192.0.2.7'],
    ['192.0.2.7, "[2001:db8:aaaa::1]:443"', '192.0.2.7'],
    ['192.0.2.7,\t10.0.0.1:4711\t', '192.0.2.7'],
    ['[2001:db8:1:2::6]:443, 10.0.0.1:4711', '2001:db8:1:2::/64'],
    ['192.0.2.9, 192.0.2.7:80, 10.0.0.1', '192.0.2.7'],
    ['192.0.2.7, unknown', '127.0.0.1'],
    ['192.0.2.7, unknown, 10.0.0.1:80', '10.0.0.1'],
    ['192.0.2.7, _hidden, 10.0.0.2, 10.0.0.1:80', '10.0.0.2'],
    ['', '127.0.0.1'],
  ])('from X-Forwarded-For: %s is %s', async (forwarded, address) => {
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-forwarded-for': forwarded } });
    expect(await response.text()).toBe(address);
  });
});
