import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { installSdks } from '../test/support/clients/sdk-client.js';
import { startService } from '../test/support/service/service.js';
import { alternately } from './support/pairs.js';
import { ratioRow } from './support/ratio-row.js';
import { dropLog } from './support/service-log.js';
import type { Row } from './support/table.js';

const target = 1.05;
const minPairs = 100;
const model = 'echo';
const messages = [{ role: 'user', content: 'Hello' }];

interface Piece {
  readonly message: { readonly content: string };
}

type Asked = Readonly<Record<string, unknown>>;

/** Part of Ollama's client that this bench uses. */
interface Client {
  chat(request: Asked & { readonly stream: true }): Promise<AsyncIterable<Piece>>;
  chat(request: Asked): Promise<Piece>;
}

interface OllamaPackage {
  readonly Ollama: new (config: { readonly host: string }) => Client;
}

/** Measures Ollama's client, compared to the same question to OpenAI's API, sent with fetch. */
export async function ollama(rounds: number): Promise<Row[]> {
  await using service = await startService();
  dropLog(service);
  const { Ollama } = await ollamaPackage();
  const client = new Ollama({ host: service.url });
  const pairs = Math.max(rounds, minPairs);
  const rows: Row[] = [];
  for (const isStreamed of [false, true]) {
    const run = {
      bare: () => timed(() => completion(service.url, isStreamed)),
      relay: () => timed(() => chat(client, isStreamed)),
    };
    await alternately(10, run); // to warm up
    const measured = await alternately(pairs, run);
    const how = isStreamed ? 'streamed' : 'plain';
    rows.push(
      ratioRow(
        `A chat of the client of Ollama ÷ POST /v1/chat/completions, ${how}, p50 of ${pairs} pairs`,
        target,
        measured.map(({ relay, bare }) => [relay, bare] as const),
      ),
    );
  }
  return rows;
}

async function ollamaPackage(): Promise<OllamaPackage> {
  const { clients } = await installSdks();
  const file = join(clients, '..', 'node_modules', 'ollama', 'dist', 'index.mjs');
  return (await import(pathToFileURL(file).href)) as OllamaPackage;
}

async function chat(client: Client, isStreamed: boolean): Promise<string> {
  if (!isStreamed) return (await client.chat({ model, messages })).message.content;
  let text = '';
  for await (const { message } of await client.chat({ model, messages, stream: true })) text += message.content;
  return text;
}

/** Sends a question to OpenAI's API, and reads the stream to its end without parsing it. */
async function completion(url: string, stream: boolean): Promise<string> {
  const body = JSON.stringify({ model, messages, stream });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
  return stream ? await response.text() : JSON.stringify(await response.json());
}

async function timed(ask: () => Promise<string>): Promise<number> {
  const begun = performance.now();
  const text = await ask();
  if (!text.includes('Hello')) throw new Error(`the relay answered ${text.slice(0, 300)}`);
  return performance.now() - begun;
}
