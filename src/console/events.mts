/** One server-sent event. */
export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

/** Owns the text of an event stream that is not a whole event yet. Fields `id` and `retry` mean nothing here. */
export class EventParser {
  #rest = '';
  #event = '';
  #data: string[] = [];
  #isAtStart = true;

  /** The events that this text completes. */
  push(text: string): StreamEvent[] {
    const isFirst = this.#isAtStart && text !== '';
    if (isFirst) this.#isAtStart = false;
    this.#rest += isFirst && text.startsWith('\uFEFF') ? text.slice(1) : text;
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/); // a CR at the end may be half of a CRLF
    this.#rest = lines.pop() ?? '';
    return lines.flatMap((line) => this.#take(line) ?? []);
  }

  #take(line: string): StreamEvent | null {
    if (line === '') return this.#complete();
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'event') this.#event = value;
    if (field === 'data') this.#data.push(value);
    return null;
  }

  #complete(): StreamEvent | null {
    const found = { event: this.#event || 'message', data: this.#data.join('\n') };
    const isEmpty = this.#data.length === 0;
    this.#event = '';
    this.#data = [];
    return isEmpty ? null : found;
  }
}

/** The events of a response's body. Whoever stops reading cancels the response. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = body.getReader(); // not every browser can iterate over a stream
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
