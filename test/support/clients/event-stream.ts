import type { Service } from '../service/service.js';

export interface StreamEvent {
  readonly event: string;
  readonly data: Record<string, unknown>;
  /** First number of the id. */
  readonly id?: number;
  /** Whole id, which has a second number if the event counts thoughts. */
  readonly place?: string;
}

/** Answer to a request for an event stream, read as the bytes arrive. */
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

  /** Returns the JSON body of an answer without a stream. */
  async body(): Promise<Record<string, unknown>> {
    return (await this.#response.json()) as Record<string, unknown>;
  }

  /** Returns the next event, which must have this name. */
  async next(event: string): Promise<Record<string, unknown>> {
    const { value } = await this.#reader.next();
    expect(value?.event).toBe(event);
    return value?.data ?? {};
  }

  /** Returns the next event of any name. */
  async any(): Promise<StreamEvent> {
    const { value } = await this.#reader.next();
    if (value === undefined) throw new Error('the stream has ended');
    return value as StreamEvent;
  }

  /** Returns all remaining events. */
  async remainingEvents(): Promise<StreamEvent[]> {
    const events: StreamEvent[] = [];
    for await (const event of this.#reader) events.push(event);
    return events;
  }

  /** Closes the connection. */
  leave(): void {
    this.#controller.abort();
    void this.#reader.next().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.leave();
  }
}

/** Sends a request; resolves when the headers have arrived. */
export async function stream(
  service: Service,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<StreamAnswer> {
  const controller = new AbortController();
  const response = await service.fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ stream: true, ...body }),
    signal: controller.signal,
  });
  return new StreamAnswer(response, controller);
}

/** Joins the deltas of these events. */
export function textOf(events: readonly StreamEvent[]): string {
  return events.flatMap(({ event, data }) => (event === 'delta' ? [data.text as string] : [])).join('');
}

export function namesOf(events: readonly StreamEvent[]): string[] {
  return events.map(({ event }) => event);
}

/** Follows a background job's events after the event with this id. */
export async function follow(
  service: Service,
  jobId: unknown,
  after: number | string | null = null,
  headers: Record<string, string> = {},
): Promise<StreamAnswer> {
  const controller = new AbortController();
  const response = await service.fetch(`/jobs/${jobId}/events`, {
    headers: { ...headers, ...(after !== null && { 'last-event-id': String(after) }) },
    signal: controller.signal,
  });
  return new StreamAnswer(response, controller);
}

/**
 * Parses events strictly: an optional id, a name, one line of data, and an empty line; comments may be between events.
 */
async function* eventsOf(response: Response): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let incompleteBlock = '';
  for await (const chunk of response.body ?? []) {
    const blocks = (incompleteBlock + decoder.decode(chunk, { stream: true })).split('\n\n');
    incompleteBlock = blocks.pop() ?? '';
    for (const block of blocks) if (!block.startsWith(':')) yield eventOf(block);
  }
  expect(incompleteBlock + decoder.decode()).toBe('');
}

function eventOf(block: string): StreamEvent {
  const [, place, id, event = '', data = ''] =
    /^(?:id: ((\d+)(?:-\d+)?)\n)?event: (\w+)\ndata: ([^\n]*)$/.exec(block) ?? [];
  expect(event).not.toBe('');
  return { event, data: JSON.parse(data) as StreamEvent['data'], ...(id !== undefined && { id: Number(id), place }) };
}

/** Opens GET /status/stream, or another path with the same events. Resolves when the headers have arrived. */
export async function viewStatus(
  { url }: { readonly url: string },
  headers: Record<string, string> = {},
  path = '/status/stream',
): Promise<StreamAnswer> {
  const controller = new AbortController();
  const response = await fetch(url + path, { headers, signal: controller.signal });
  return new StreamAnswer(response, controller);
}
