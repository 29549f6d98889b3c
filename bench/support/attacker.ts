import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { bodyBytes, DrippingBodies, headerOf, jsonType } from '../../test/support/dripping-bodies.js';
import { chunk, jsonPost, request } from '../../test/support/raw-http.js';

/**
 * A program of its own: sends hostile bodies with the key of `greedy` until it is ended. Arguments: port, kind of body and
 * connections. It sends `ready` when its bodies are made.
 */

const [port, kind, connections] = [Number(process.argv[2]), process.argv[3] ?? '', Number(process.argv[4])];
const pauseMs = 5;

/** 16 MB of this. */
function filledWith(begin: string, unit: string): Buffer {
  return Buffer.alloc(bodyBytes, begin + unit.repeat(Math.ceil(65_536 / unit.length)));
}

function fields(): Buffer {
  return Buffer.from(`{${Array.from({ length: 1_300_000 }, (_, index) => `"${index}":0`).join(',')}}`);
}

function whole(body: Buffer): Buffer {
  return jsonPost('/ask', body, [headerOf('greedy'), 'Connection: close']);
}

function longString(): Buffer {
  const [begin, end] = ['{"prompt":"', '"}'];
  return Buffer.from(begin + 'x'.repeat(bodyBytes - begin.length - end.length) + end);
}

/** What is sent again and again, on a connection of its own each time. */
const bodies: Readonly<Record<string, () => Buffer>> = {
  levels: () => whole(filledWith('', '[')),
  lists: () => whole(filledWith('[', '[],')),
  fields: () => whole(fields()),
  legal: () => whole(longString()),
  unfinished: () =>
    request(
      'POST /ask',
      [jsonType, headerOf('greedy'), `Content-Length: ${bodyBytes}`],
      longString().subarray(0, bodyBytes - 1),
    ),
  pieces: () =>
    request('POST /ask', [jsonType, headerOf('greedy'), 'Transfer-Encoding: chunked'], chunk(' ').repeat(500_000)),
};

/** How long a client that has sent all of it waits for an answer. */
const patienceMs = 1000;

function sendOnce(bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1').resume();
    const leave = () =>
      void sleep(kind === 'legal' ? 60_000 : patienceMs, null, { ref: false }).then(() => socket.destroy());
    socket.on('error', () => {}).once('close', () => resolve());
    socket.once('connect', () => socket.write(bytes, leave));
  });
}

async function lane(bytes: Buffer): Promise<never> {
  for (;;) {
    await sendOnce(bytes);
    await sleep(pauseMs);
  }
}

function begin(): void {
  if (kind === 'drips') {
    new DrippingBodies(port, connections, () => [headerOf('greedy'), `Content-Length: ${bodyBytes}`]);
    return;
  }
  if (kind === 'none') return;
  const bytes = bodies[kind]?.();
  if (bytes === undefined) throw new Error(`no body is called ${kind}`);
  for (let index = 0; index < connections; index++) void lane(bytes);
}

process.once('disconnect', () => process.exit());
begin();
process.send?.('ready');
