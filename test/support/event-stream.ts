import type { Service } from './service.js';

export interface StreamEvent {
  readonly event: string;
  readonly data: Record<string, unknown>;
  /** Where it has one. */
  readonly id?: number;
}

/** The answer to a request that asked for an event stream, read as it comes. */
export class StreamAnswer implements AsyncDisposable {
  readonly status: number;
  readonly headers: Headers;
  readonly #response: Response;
  readonly #reader: AsyncGenerator<StreamEvent>;
  readonly #controller: AbortController;

  constructor(response: Response, controller: AbortController) {
    this.status = response.status;
    this.headers = response.headers;
    this.#response = response;
    this.#controller = controller;
    this.#reader = eventsOf(response);
  }

  /** The body of an answer that is no stream. */
  async body(): Promise<Record<string, unknown>> {
    return (await this.#response.json()) as Record<string, unknown>;
  }

  /** The next event, which must be one of this name. */
  async next(event: string): Promise<Record<string, unknown>> {
    const { value } = await this.#reader.next();
    expect(value?.event).toBe(event);
    return value?.data ?? {};
  }

  /** The next event, whatever it is. */
  async any(): Promise<StreamEvent> {
    const { value } = await this.#reader.next();
    if (value === undefined) throw new Error('the stream has ended');
    return value as StreamEvent;
  }

  /** All events that are still to come. */
  async rest(): Promise<StreamEvent[]> {
    const events: StreamEvent[] = [];
    for await (const event of this.#reader) events.push(event);
    return events;
  }

  /** Goes away. */
  leave(): void {
    this.#controller.abort();
    void this.#reader.next().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.leave();
  }
}

/** Resolves when the headers have come. */
export async function stream(
  service: Service,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<StreamAnswer> {
  const controller = new AbortController();
  const response = await fetch(service.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ stream: true, ...body }),
    signal: controller.signal,
  });
  return new StreamAnswer(response, controller);
}

/** What the deltas among these events add up to. */
export function textOf(events: readonly StreamEvent[]): string {
  return events.flatMap(({ event, data }) => (event === 'delta' ? [data.text as string] : [])).join('');
}

export function namesOf(events: readonly StreamEvent[]): string[] {
  return events.map(({ event }) => event);
}

/** The events of a background job, after this one. */
export async function follow(
  service: Service,
  jobId: unknown,
  after: number | null = null,
  headers: Record<string, string> = {},
): Promise<StreamAnswer> {
  const controller = new AbortController();
  const response = await fetch(`${service.url}/jobs/${jobId}/events`, {
    headers: { ...headers, ...(after !== null && { 'last-event-id': String(after) }) },
    signal: controller.signal,
  });
  return new StreamAnswer(response, controller);
}

/** Strict: an event is an id or none, a name, one line of data, and an empty line; comments may stand between. */
async function* eventsOf(response: Response): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  for await (const chunk of response.body ?? []) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) if (!block.startsWith(':')) yield eventOf(block);
  }
  expect(rest + decoder.decode()).toBe('');
}

function eventOf(block: string): StreamEvent {
  const [, id, event = '', data = ''] = /^(?:id: (\d+)\n)?event: (\w+)\ndata: ([^\n]*)$/.exec(block) ?? [];
  expect(event).not.toBe('');
  return { event, data: JSON.parse(data) as StreamEvent['data'], ...(id !== undefined && { id: Number(id) }) };
}

/** Opens GET /status/stream, or another path where that is served. Resolves when the headers have come. */
export async function viewStatus(
  { url }: { readonly url: string },
  headers: Record<string, string> = {},
  path = '/status/stream',
): Promise<StreamAnswer> {
  const controller = new AbortController();
  const response = await fetch(url + path, { headers, signal: controller.signal });
  return new StreamAnswer(response, controller);
}
