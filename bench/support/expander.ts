import { setTimeout as sleep } from 'node:timers/promises';
import { headerOf } from '../../test/support/clients/dripping-bodies.js';
import { type ExpandingKind, expandingRequests } from '../../test/support/clients/expanding.js';

/**
 * Program that sends requests which could expand in the service, with the key of `greedy`, until it is killed.
 * Arguments: port, kind, and number of connections. Sends `ready` to its parent when its preparations are complete.
 */

const [port, kind, connections] = [process.argv[2], process.argv[3] as ExpandingKind, Number(process.argv[4])];
const pauseMs = 5;

async function main(): Promise<void> {
  const [name = '', value = ''] = headerOf('greedy').split(': ');
  const send = await expandingRequests[kind]({ url: `http://127.0.0.1:${port}`, headers: { [name]: value } });
  process.send?.('ready');
  for (let count = 0; count < connections; count++) void repeat(send);
}

async function repeat(send: () => Promise<number>): Promise<never> {
  for (;;) {
    await send().catch(() => {});
    await sleep(pauseMs);
  }
}

process.once('disconnect', () => process.exit());
void main();
