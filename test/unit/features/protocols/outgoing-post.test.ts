import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  AnswerTooLarge,
  connectionFault,
  sendPost,
  textOfAnswer,
} from '../../../../src/features/protocols/outgoing-post.js';

const { signal } = new AbortController();

/** Posts to a server that answers in this way, and returns the pieces of the answer. */
async function piecesOf(answer: (res: ServerResponse) => void, ...limits: [maxBytes: number, maxPieces?: number]) {
  await using server = createServer((_req, res) => answer(res)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pieces: string[] = [];
  for await (const piece of textOfAnswer(await sendPost({ url, headers: {}, body: '{}', signal }), ...limits))
    pieces.push(piece);
  return pieces.join('');
}

describe('The answer to a POST of the service', () => {
  it('is read as UTF-8, up to the limit', async () => {
    await expect(piecesOf((res) => void res.end('größe'), 7)).resolves.toBe('größe');
    await expect(piecesOf((res) => void res.end('größe'), 6)).rejects.toThrow(AnswerTooLarge);
  });

  it('has at most a number of pieces', async () => {
    await expect(piecesOf((res) => void res.end('a'), 100, 0)).rejects.toThrow('has more than 0 pieces');
  });

  it('is missing if the server closes the connection', async () => {
    const failed = await piecesOf((res) => void res.destroy(), 100).catch(connectionFault);
    expect(failed).toBe('no connection: ECONNRESET');
  });
});
