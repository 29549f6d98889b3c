import { setTimeout as sleep } from 'node:timers/promises';
import { holdsSocket } from '../../../src/shared/process/proc.js';
import { pngBytes } from '../clients/ask-page.js';
import { note, ToolClient } from '../clients/tool-client.js';
import { Exposition } from '../documents/exposition.js';
import { headersOf, keyOf } from '../doors/named-keys.js';
import { killIfAlive } from '../processes/processes.js';
import { inodeOfClient } from '../processes/sockets.js';
import type { Answer, Service } from '../service/service.js';

/** Clients, each with a key of its own. */
export const holders: readonly string[] = Array.from({ length: 8 }, (_, index) => `client-${index}`);
const canaryForm = /canary-\d+/g;
const holderForm = /client-\d+/g;

export function canaryOf(index: number): string {
  return `canary-${index}`;
}

export function holderOf(index: number): string {
  return holders[index % holders.length] ?? '';
}

/** Returns the index of the question of a request to a model's API. */
export function indexIn(body: object): number {
  return Number(distinct(JSON.stringify(body), canaryForm)[0]?.slice('canary-'.length));
}

function distinct(text: string, form: RegExp): readonly string[] {
  return [...new Set(text.match(form))];
}

/** Asks one question. Rejects if the answer is wrong. */
type Ask = (service: Service, index: number) => Promise<void>;

const attached = (type: string, bytes: Buffer) => ({ media_type: type, data: bytes.toString('base64') });
const image = attached('image/png', pngBytes);
const document = (index: number) => ({
  ...attached('text/plain', Buffer.from(`A document with ${canaryOf(index)}.`)),
  name: `${canaryOf(index)}.txt`,
});

/** Throws if the answer is not the expected one, or has the canary of another question. */
function check(index: number, { status, text }: Pick<Answer, 'status' | 'text'>, expected: readonly number[]): void {
  // On a busy machine, any question may exceed the time limit.
  if (!expected.includes(status) && status !== 504) throw new Error(`${canaryOf(index)}: ${status} ${text}`);
  const canaries = distinct(text, canaryForm);
  const isOwn = canaries.length === 0 ? status !== 200 : canaries.join() === canaryOf(index);
  if (!isOwn) throw new Error(`${canaryOf(index)} was answered with ${text}`);
}

function asks(more: (index: number) => object = () => ({}), expected: readonly number[] = [200]): Ask {
  return async (service, index) => {
    const body = { prompt: `${canaryOf(index)}, please`, ...more(index) };
    check(index, await service.post('/ask', body, headersOf(holderOf(index))), expected);
  };
}

/** Posts to an API that shall answer with 200. */
function posts(path: string, more: object = {}): Ask {
  return async (service, index) => {
    const messages = [{ role: 'user', content: `${canaryOf(index)}, please` }];
    const body = { model: 'default', messages, ...more };
    check(index, await service.post(path, body, headersOf(holderOf(index))), [200]);
  };
}

/** Sends two messages, then replaces the second one. */
async function chat(service: Service, index: number): Promise<void> {
  const headers = headersOf(holderOf(index));
  const say = async (message: string, id?: unknown) => {
    const body = { message: `${canaryOf(index)} ${message}`, ...(id !== undefined && { conversation_id: id }) };
    const answer = await service.post('/chat', body, headers);
    check(index, answer, [200, 201]);
    return answer.body.conversation_id;
  };
  const id = await say('first');
  if (id === undefined) return;
  await say('second', id);
  const fork = await service.post(`/chat/${id}/fork`, { from: 2 }, headers);
  await say('edited', fork.body.conversation_id);
}

/** Asks with a tool. `hasResult`: whether the client sends the result of the call. */
function callsTool(hasResult: boolean): Ask {
  return async (service, index) => {
    const client = new ToolClient(service, keyOf(holderOf(index)), { model: 'default', tools: [note] });
    const { status, calls } = await client.say(`${canaryOf(index)}, please`);
    check(index, { status, text: JSON.stringify(calls) }, [200]);
    if (!hasResult || status !== 200) return;
    const end = await client.answer(() => `noted ${canaryOf(index)}`);
    check(index, { status: end.status, text: end.text ?? '' }, [200]);
  };
}

/** Asks with a stream, and disconnects: two of three in the middle of the answer, the third at any time before or in it. */
async function leave(service: Service, index: number): Promise<void> {
  const leaver = new AbortController();
  const headers = { ...headersOf(holderOf(index)), 'content-type': 'application/json' };
  const body = JSON.stringify({ prompt: `${canaryOf(index)}, please`, stream: true });
  const init = { method: 'POST', headers, body, signal: leaver.signal };
  const read = async () => {
    for await (const piece of (await fetch(`${service.url}/ask`, init)).body ?? [])
      if (Buffer.from(piece).includes(canaryOf(index))) return;
  };
  const reading = read().catch(() => {});
  await Promise.race([reading, ...(index % 3 === 0 ? [sleep((index * 37) % 600)] : [])]);
  await sleep((index * 11) % 200);
  leaver.abort();
  await reading;
}

const schemaFor = (index: number) => ({
  type: 'object',
  properties: { [holderOf(index)]: { type: 'string' } },
  required: [holderOf(index)],
  additionalProperties: false,
});

/** Kinds of questions. The stub must let those from `refused` on end in this way. */
const kinds = {
  plain: asks(),
  effort: asks(() => ({ effort: 'high' })),
  image: asks(() => ({ images: [image] })),
  document: asks((index) => ({ files: [document(index)] })),
  'image and document': asks((index) => ({ images: [image], files: [document(index)] })),
  thoughts: asks(() => ({ thoughts: true })),
  system: asks((index) => ({ system: `Serve ${holderOf(index)}.` })),
  schema: asks((index) => ({ schema: schemaFor(index) })),
  completion: posts('/v1/chat/completions'),
  message: posts('/v1/messages', { max_tokens: 1000 }),
  chat,
  tool: callsTool(true),
  'abandoned tool': callsTool(false),
  refused: asks(() => ({}), [400, 500, 502]),
  broken: asks(() => ({}), [500, 502]),
  left: leave,
  late: asks(() => ({}), [504]),
  killed: asks(() => ({}), [500, 502]),
  dying: asks(() => ({}), [200, 500, 502]),
  model: asks(() => ({ model: 'haiku' })),
} satisfies Readonly<Record<string, Ask>>;
export type QuestionKind = keyof typeof kinds;

/** Ends the program that sent a request from this port, after a while. */
export async function killSender(service: Service, clientPort: number, delayMs: number): Promise<void> {
  const inode = await inodeOfClient(clientPort);
  for (const pid of await service.jobProcesses())
    if (inode !== null && (await holdsSocket(pid, inode))) setTimeout(() => killIfAlive(pid), delayMs);
}

/** Request to a model's API, as a test compares it. */
export interface ComparedRequest {
  readonly body: object;
  /** The body without what is new in each process, such as ids. */
  readonly shape: string;
  /** Id of the process or its session. */
  readonly session: string;
}

/** Questions of these kinds by eight clients, each with a canary, in a mixed order. */
export class MixedQuestions {
  readonly #order: readonly QuestionKind[];
  /** Requests of each kind in a fresh process. */
  readonly #shapes = new Map<QuestionKind, ReadonlySet<string>>();

  /** A kind may be in the list several times. Its length must share no factor with 7 and 8. */
  constructor(order: readonly QuestionKind[]) {
    this.#order = order;
  }

  kindOf(index: number): QuestionKind {
    return this.#order[(index * 7) % this.#order.length] ?? 'plain';
  }

  /** Returns the index of a question of this kind; all have the same client. */
  nth(kind: QuestionKind, count: number): number {
    const first = this.#order.findIndex((_, index) => this.kindOf(index) === kind);
    return first + count * this.#order.length * holders.length;
  }

  ask(service: Service, index: number): Promise<void> {
    return kinds[this.kindOf(index)](service, index);
  }

  /** Asks questions of these kinds. `requests` returns all requests so far; `service` must renew no process. */
  async learn(service: Service, requests: () => readonly ComparedRequest[], names = this.#order): Promise<void> {
    for (const kind of new Set(names)) {
      const before = requests().length;
      // A client that leaves early may have caused no request.
      for (let at = 0; at < 3 && requests().length === before; at++) await this.ask(service, this.nth(kind, at));
      this.#shapes.set(
        kind,
        new Set(
          requests()
            .slice(before)
            .map((request) => plain(request.shape)),
        ),
      );
    }
  }

  /** Asks the first questions, six at a time. Returns what is wrong with the answers. */
  async askFirst(count: number, service: Service): Promise<readonly string[]> {
    const left = Array.from({ length: count }, (_, index) => index);
    const faults: string[] = [];
    const run = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift())
        await this.ask(service, next).catch((error: Error) => void faults.push(error.message));
    };
    await Promise.all(Array.from({ length: 6 }, run));
    return faults;
  }

  /** Returns where these requests differ from those of fresh processes, or have another question or client in them. */
  faultsIn(requests: readonly ComparedRequest[]): readonly string[] {
    const owners = new Map<string, string>();
    return requests.flatMap(({ body, shape, session }) => {
      const text = JSON.stringify(body);
      const index = indexIn(body);
      const [holder, kind] = [holderOf(index), this.kindOf(index)];
      const owner = owners.get(session) ?? holder;
      owners.set(session, owner);
      const faults = [
        ...distinct(text, canaryForm).filter((canary) => canary !== canaryOf(index)),
        ...distinct(text, holderForm).filter((client) => client !== holder),
        ...(owner === holder ? [] : [`a session of ${owner}`]),
        ...(this.#shapes.get(kind)?.has(plain(shape)) ? [] : [`not as in a fresh process: ${plain(shape)}`]),
      ];
      return faults.map((fault) => `${canaryOf(index)}, ${kind}: ${fault}`);
    });
  }
}

function plain(shape: string): string {
  return shape.replaceAll(canaryForm, 'canary').replaceAll(holderForm, 'client');
}

/** Returns how many questions renewed processes have served, or others. */
export async function renewedQuestions(
  service: Service,
  cli: 'claude' | 'codex',
  source: 'renewed' | 'rewound' = 'renewed',
): Promise<number> {
  const scrape = new Exposition((await service.get('/metrics', headersOf('operator'))).text);
  return scrape.value(`questions_total{cli="${cli}",process="${source}"}`);
}
