import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { bodyBytes, DrippingBodies, headerOf, jsonType } from '../../test/support/clients/dripping-bodies.js';
import { chunk, jsonPost, request } from '../../test/support/clients/raw-http.js';

/**
 * Program that sends hostile bodies with the key of `greedy` until it is killed. Arguments: port, kind of body, and
 * number of connections. Sends `ready` to its parent when the bodies exist.
 */

const [port, kind, connections] = [Number(process.argv[2]), process.argv[3] ?? '', Number(process.argv[4])];
const pauseMs = 5;

/** Returns a body that is `begin` and then repeats `unit`, 16 MB long. */
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

/** Makers of the bodies that are sent repeatedly, each time on a new connection. */
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

/** Time that a client waits for an answer after it has sent everything. */
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
