import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { noticePoster } from '../../../../src/features/webhooks/post.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { freePort } from '../../../support/basics/free-port.js';
import { Receiver } from '../../../support/service/receiver.js';

const post = noticePoster('1.2.3');
const body = JSON.stringify({ type: 'job.ended', data: {} });
const never = new AbortController().signal;

async function answering(answer: (res: ServerResponse) => void) {
  const receiver = await Receiver.start();
  receiver.answer = answer;
  return receiver;
}

describe('An attempt to deliver a notice', () => {
  it('sends the notice as JSON, and succeeds with any status of success', async () => {
    await using receiver = await answering((res) => void res.writeHead(202).end('thank you'));
    expect(await post(`${receiver.url}/hook?a=b`, { 'webhook-id': 'a' }, body, never, true)).toEqual({
      kind: 'accepted',
    });
    const expected = { 'content-type': 'application/json', 'user-agent': 'prompt-relay/1.2.3', connection: 'close' };
    expect(receiver.notices).toMatchObject([{ id: 'a', path: '/hook?a=b', headers: expected }]);
  });

  it.each([
    [500, 'it answered 500', false],
    [404, 'it answered 404', false],
    [410, 'it answered 410', true],
  ])('fails with the status %d', async (status, reason, isFinal) => {
    await using receiver = await answering((res) => void res.writeHead(status).end());
    expect(await post(receiver.url, {}, body, never, true)).toEqual({ kind: 'failed', reason, isFinal });
  });

  it.each([301, 302, 303, 307, 308])('follows no redirect: %d', async (status) => {
    await using other = await Receiver.start();
    await using receiver = await answering((res) => void res.writeHead(status, { location: other.url }).end());
    const reason = `it answered ${status}, a redirect`;
    expect(await post(receiver.url, {}, body, never, true)).toEqual({ kind: 'failed', reason, isFinal: false });
    expect(other.notices).toEqual([]);
  });

  it('reads only a few kilobytes of an answer', async () => {
    const { promise: closed, resolve } = withResolvers<number>();
    await using receiver = await answering((res) => {
      let written = 0;
      const more = () => {
        while (!res.destroyed && res.write('x'.repeat(65_536))) written += 65_536;
      };
      res.on('drain', more).on('close', () => resolve(written));
      more();
    });
    expect(await post(receiver.url, {}, body, never, true)).toEqual({ kind: 'accepted' });
    expect(await closed).toBeLessThan(32 * 1024 ** 2); // the buffers of the system
  });

  it('succeeds if the answer does not end, and leaves no connection open', async () => {
    const { promise: closed, resolve } = withResolvers();
    const cutting = new AbortController();
    await using receiver = await answering((res) => {
      res.on('close', resolve).writeHead(200).write('a');
      setTimeout(() => cutting.abort(new Error('no answer in 10 s')), 200);
    });
    expect(await post(receiver.url, {}, body, cutting.signal, true)).toEqual({ kind: 'accepted' });
    expect(cutting.signal.aborted).toBe(true);
    await closed;
  });

  it('ends when it is aborted, and then has closed its connection', async () => {
    const { promise: closed, resolve } = withResolvers();
    const cutting = new AbortController();
    await using receiver = await answering((res) => {
      res.on('close', resolve);
      cutting.abort(new Error('no answer in 10 s'));
    });
    const cut = { kind: 'failed', reason: 'no answer in 10 s', isFinal: false };
    expect(await post(receiver.url, {}, body, cutting.signal, true)).toEqual(cut);
    await closed;
  });

  it('fails if nobody listens, if the connection breaks, and if the name does not exist', async () => {
    const refused = await post(`http://127.0.0.1:${await freePort()}/`, {}, body, never, true);
    expect(refused).toEqual({ kind: 'failed', reason: 'no connection: ECONNREFUSED', isFinal: false });
    await using broken = await answering((res) => void res.socket?.destroy());
    expect(await post(broken.url, {}, body, never, true)).toMatchObject({ reason: 'no connection: ECONNRESET' });
    expect(await post('http://nobody.invalid/', {}, body, never, true)).toMatchObject({
      kind: 'failed',
      isFinal: false,
    });
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.on('connection', (socket) => void socket.end('this is not HTTP\r\n\r\n'));
    expect(await post(`http://127.0.0.1:${port}/`, {}, body, never, true)).toMatchObject({ kind: 'failed' });
    server.close();
  });

  it('reaches the receiver of the operator while the names of clients are looked up', async () => {
    await using receiver = await Receiver.start();
    const { promise: slow, reject } = withResolvers<never>();
    const find = async (name: string) => (name === 'operator.test' ? [{ address: '127.0.0.1', family: 4 }] : slow);
    const poster = noticePoster('1.2.3', find);
    const others = ['a', 'b'].map((name) => poster(`http://${name}.test/`, {}, body, never, true));
    const url = receiver.url.replace('127.0.0.1', 'operator.test');
    expect(await poster(url, {}, body, never, false)).toEqual({ kind: 'accepted' });
    reject(new Error('no such name'));
    expect(await Promise.all(others)).toMatchObject([{ kind: 'failed' }, { kind: 'failed' }]);
  });
});
