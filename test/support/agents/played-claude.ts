import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../basics/folder.js';
import { type Cell, messageFor, second } from '../doors/endings.js';
import { type Service, type ServiceOptions, script, startWithProgram } from '../service/service.js';
import { type Behaviour, type MessagesApi, says, startMessagesApi, tokens } from './messages-api-stub.js';

const model = 'claude-sonnet-5';

/** A line of the CLI, or an event of the API. */
interface Line {
  readonly type: string;
  readonly [field: string]: unknown;
}

const taken = { type: 'result', is_error: false, num_turns: 0, result: '' };

/** What shows that the program takes everything over stdin. */
const trial: readonly Line[] = [
  { type: 'system', subtype: 'init', tools: ['StructuredOutput'] },
  ...[
    { sdk_mcp_manifests_parked: { relay: 'parked' } },
    { applied: { model: 'claude-of-the-trial', effort: 'low' } },
    { categories: [{ name: 'System prompt', tokens: 1 }] },
  ].map((response) => ({ type: 'control_response', response: { subtype: 'success', response } })),
];

/** A service whose claude plays lines that were recorded before: that takes far less than the real program. */
export class PlayedClaude implements AsyncDisposable {
  readonly service: Service;
  readonly #folder: AsyncDisposable;

  constructor(service: Service, folder: AsyncDisposable) {
    this.service = service;
    this.#folder = folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.stop();
    await this.#folder[Symbol.asyncDispose]();
  }
}

/** The prompt that is answered with the cell at this place, in its first word after `play`. */
export function promptAt(place: number): string {
  return `play cell-${place}`;
}

/** The results of a call, and all other prompts, are answered with "Noted.". */
export async function startPlayedClaude(
  cells: readonly Cell[],
  env: Readonly<Record<string, string>>,
  options: Omit<ServiceOptions, 'env'> = {},
): Promise<PlayedClaude> {
  const folder = await temporaryFolder();
  const api = await startMessagesApi();
  const write = (name: string, lines: readonly Line[]) =>
    writeFile(join(folder.path, name), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await write('trial', trial);
  await write('taken', [taken]);
  await write('results', [...linesOf(await recorded(api, says('Noted.'))), ...resultLines('Noted.', 1)]);
  for (const [place, cell] of cells.entries()) await write(`cell-${place}`, await linesFor(api, cell));
  await api.close();
  const command = script('plays-messages.pl', folder.path);
  return new PlayedClaude(await startWithProgram(command, { MODEL_API_CLI: 'claude', ...env }, options), folder);
}

/** The events of one message of the model, as the API sends them. */
async function recorded(api: MessagesApi, behaviour: Behaviour): Promise<readonly Line[]> {
  api.behave = () => behaviour;
  const body = JSON.stringify({ model, max_tokens: 100, stream: true, messages: [{ role: 'user', content: 'Hi' }] });
  const text = await (await fetch(`${api.url}/v1/messages`, { method: 'POST', body })).text();
  return text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6)) as Line] : []));
}

/** The CLI asks for the result of each complete call while the message still streams. */
function linesOf(events: readonly Line[]): readonly Line[] {
  let open: { readonly id: string; json: string } | null = null;
  const lines: Line[] = [];
  for (const event of events) {
    const { content_block: block, delta } = event as {
      readonly content_block?: { readonly type: string; readonly id: string };
      readonly delta?: { readonly partial_json?: string };
    };
    if (block?.type === 'tool_use') open = { id: block.id, json: '' };
    if (open !== null) open.json += delta?.partial_json ?? '';
    lines.push({ type: 'stream_event', parent_tool_use_id: null, event });
    if (event.type !== 'content_block_stop' || open === null) continue;
    if (open.json.endsWith('}')) lines.push(callLine(open.id, open.json));
    open = null;
  }
  return lines;
}

function callLine(id: string, json: string): Line {
  const params = { name: 'note', arguments: JSON.parse(json) as unknown, _meta: { 'claudecode/toolUseId': id } };
  const message = { jsonrpc: '2.0', id: 2, method: 'tools/call', params };
  return {
    ...{ type: 'control_request', request_id: id },
    request: { subtype: 'mcp_message', server_name: 'relay', message },
  };
}

/** The end of a turn of so many messages, the last of which says this. */
function resultLines(text: string, messages: number): readonly Line[] {
  const usage = {
    input_tokens: messages * tokens.input,
    cache_creation_input_tokens: messages * tokens.cacheCreation,
    cache_read_input_tokens: messages * tokens.cacheRead,
    output_tokens: messages * tokens.output,
  };
  const assistant = { type: 'assistant', message: { model, content: [{ type: 'text', text }] } };
  return [assistant, { type: 'result', is_error: false, num_turns: messages, result: text, usage }];
}

/**
 * The CLI waits for the results of complete calls, and ends its turn itself after a text with a natural end. Else it asks
 * the model again, if it is not ended.
 */
async function linesFor(api: MessagesApi, cell: Cell): Promise<readonly Line[]> {
  const { content, expected, stopReason } = cell;
  const first = linesOf(await recorded(api, messageFor(cell)));
  if (content === 'calls' || content === 'a call and a cut call') return first;
  const isEnd = content === 'text' && ['whole', 'stop'].includes(expected) && stopReason !== 'tool_use';
  if (isEnd) return [...first, ...resultLines('Hello, Ada', 1)];
  return [...first, ...linesOf(await recorded(api, second)), ...resultLines('Here.', 2)];
}
